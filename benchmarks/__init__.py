# SPDX-License-Identifier: Apache-2.0
"""What tilekit promises to cost, measured: `make bench` prints it and writes `results/<date>-<device>.json`."""
