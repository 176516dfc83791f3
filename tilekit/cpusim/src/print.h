// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "machine.h"

void clear_printed();
void hand_over_printed(tk_result& result);
