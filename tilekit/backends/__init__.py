# SPDX-License-Identifier: Apache-2.0
"""From tile IR to Hidet IR: one emitter for each instruction and target."""
