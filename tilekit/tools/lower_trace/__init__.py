# SPDX-License-Identifier: Apache-2.0
"""What a compile did, pass by pass, and the source that came out of it: to look at, to compare, and to edit."""
