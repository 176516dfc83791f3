# SPDX-License-Identifier: Apache-2.0
"""Cache."""

from tests.promises.kernels import compiled, programs, scaling
from tilekit import option


def test_a_generated_kernel_is_kept_for_whoever_asks_for_the_same_one():
    assert not compiled(scaling()).cached
    assert compiled(scaling()).cached
    assert not compiled(scaling(factor=3.0)).cached


def test_the_source_lies_in_the_folder_that_the_option_names(tmp_path, cache):
    option.cache_dir(str(tmp_path / "elsewhere"))
    kernel = compiled(scaling())
    (program,) = programs(tmp_path / "elsewhere")
    assert (program / "module" / "source.cu").read_text() == kernel.source
    assert not cache.exists()
