# SPDX-License-Identifier: Apache-2.0
"""Which schedule of a kernel is the best one: all are compiled side by side, run, and remembered.

build       many programs compiled by spawned processes
space       the candidates of one specialization on one machine, and what is known of each
measure     how a candidate does: timed on a GPU in a process of its own, estimated on the CPU
estimate    what the simulator's counters say of a schedule
table       what was found, in `scripts/` and in files that people pass on
session     one tuning from its first compile to its choice
schedules   the table that people look at
"""
