# SPDX-License-Identifier: Apache-2.0
"""What was compiled before, as folders that a person can read, keyed by everything that could change them."""
