# SPDX-License-Identifier: Apache-2.0
import pytest

from tests.lang.cells import cell
from tilekit.diag import LanguageError
from tilekit.lang.autotune import autotune, points, schedules


def script(*decorators, init=None):
    class Kernel:
        def __init__(self, m, n=5, warps=4):
            pass

    if init is not None:
        Kernel.__init__ = init
    for decorate in reversed(decorators):
        Kernel = decorate(Kernel)
    return Kernel


def test_the_space_is_the_product_of_the_decorators():
    kernel = script(autotune("m", [1, 2]), autotune("n", [3, 4, 5]), autotune("warps", (8,)))
    found = schedules(kernel, [], {})
    assert [(s["m"], s["n"], s["warps"]) for s in found] == [(m, n, 8) for m in (1, 2) for n in (3, 4, 5)]


def test_several_names_take_their_values_together():
    kernel = script(autotune("m, n", [(1, 2), [3, 4]]))
    assert schedules(kernel, [], {}) == [{"m": 1, "n": 2, "warps": 4}, {"m": 3, "n": 4, "warps": 4}]


@pytest.mark.parametrize("names", ["m,n", "m, n", "m ,n", " m  ,  n "])
def test_spaces_between_names_do_not_matter(names):
    assert points(script(autotune(names, [(1, 2)]))._autotune_space) == [{"m": 1, "n": 2}]


def test_one_name_may_take_tuples():
    assert schedules(script(autotune("m", [(1, 2), (3, 4)])), [], {})[1]["m"] == (3, 4)


def test_any_sequence_gives_choices():
    assert [s["m"] for s in schedules(script(autotune("m", range(3))), [], {})] == [0, 1, 2]


def test_without_a_space_there_is_one_schedule():
    assert schedules(script(), [7], {"warps": 2}) == [{"m": 7, "n": 5, "warps": 2}]


def test_arguments_of_the_user_stand_beside_the_space():
    kernel = script(autotune("n", [1, 2]))
    assert schedules(kernel, [7], {"warps": 2}) == [{"m": 7, "n": n, "warps": 2} for n in (1, 2)]


def test_a_subclass_leaves_the_space_of_its_parent_alone():
    parent = script(autotune("m", [1, 2]))

    @autotune("n", [3, 4])
    class Child(parent):
        pass

    assert len(schedules(parent, [], {})) == 2
    assert len(schedules(Child, [], {})) == 4


def test_a_debug_schedule_replaces_the_space():
    kernel = script(autotune("m", [1, 2]), autotune("warps", [1, 2, 4]))
    kernel.debug_schedule = {"m": 9, "warps": 16}
    assert schedules(kernel, [], {}) == [{"m": 9, "n": 5, "warps": 16}]


def test_an_empty_debug_schedule_means_the_defaults():
    kernel = script(autotune("warps", [1, 2, 4]))
    kernel.debug_schedule = {}
    assert schedules(kernel, [3], {}) == [{"m": 3, "n": 5, "warps": 4}]


def test_the_decorator_gives_back_the_class():
    class Kernel:
        pass

    assert autotune("m", [1])(Kernel) is Kernel


def test_init_may_take_anything_by_name():
    def init(self, m, **rest):
        pass

    kernel = script(autotune("m, stages", [(1, 2)]), init=init)
    assert schedules(kernel, [], {"flag": True}) == [{"m": 1, "rest": {"flag": True, "stages": 2}}]


def test_a_clash_between_a_call_and_the_space_is_an_error():
    with pytest.raises(LanguageError, match="m is given in the call and also by autotune"):
        schedules(script(autotune("m", [1])), [], {"m": 2})


def test_schedules_of_a_script_are_transpiled_each_for_itself():
    kernel = cell(
        """
        @tilus.autotune("width", [8, 16])
        @tilus.autotune("warps", [1, 2, 40])
        class Kernel(tilus.Script):
            def __init__(self, width, warps):
                super().__init__()
                self.width, self.warps = width, warps

            def __call__(self, n: int32):
                self.attrs.blocks = [1]
                self.attrs.warps = self.warps
        """
    )["Kernel"]()
    instance = kernel._jit_instance_for(3)
    warps = [program.function.metadata.num_warps for program in instance.transpiled_programs]
    assert warps == [1, 2, 1, 2]
    assert [failed.schedule["warps"] for failed in instance.failed_scheduling] == [40, 40]
