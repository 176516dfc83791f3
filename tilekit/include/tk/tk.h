// SPDX-License-Identifier: Apache-2.0
// The one header of a generated source.cu: CUDA's own types and intrinsics on a GPU, their emulation on a CPU.
//
// Each family is one file that holds both halves side by side, so that a function's PTX and its emulation are read
// together. A new family is a new file here, a section of cpu/abi.h, and a file of the runtime (cpusim/src).
#pragma once
#include <tk/core.h>
#include <tk/integer.h>
#include <tk/cast.h>
#include <tk/math.h>
#include <tk/memory.h>
#include <tk/shared.h>
#include <tk/warp.h>
#include <tk/sync.h>
#include <tk/matrix.h>
#include <tk/mma.h>
#include <tk/async.h>
#include <tk/semaphore.h>
