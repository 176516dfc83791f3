# SPDX-License-Identifier: Apache-2.0
"""Scripts as people hold them: specialization, the schedule, compiled kernels, and the call."""
