// SPDX-License-Identifier: Apache-2.0
// mma: the fragments of the 32 lanes are gathered into matrices, multiplied, and the sums scattered back.
//
// Fragments are seen as 32-bit words, as in PTX's figures: word w of a row of A, or of a column of B, holds the
// elements of consecutive k, the lowest in the lowest bits. Lane l has words l % 4 and l % 4 + 4 of row l / 4, and for
// an A of 16 rows of row l / 4 + 8 too. So one function gathers A and B alike, as columns of words.
#include <string.h>

#include <tk/cpu/float16.h>

#include "report.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace {

enum {
  kRows = 8,        // of a fragment that a quarter of a warp's lanes hold; it has one or two such halves
  kMaxWords = 8,    // of k in one instruction
  kMaxElements = 4, // in a word
  kBlock = 64,      // rows and columns that are multiplied at a time
  kVector = 8,
};

template <class T>
struct VectorOf;
#define TK_VECTOR(T)                                                       \
  template <>                                                              \
  struct VectorOf<T> {                                                     \
    typedef T type __attribute__((vector_size(kVector * sizeof(T)), may_alias)); \
  };
TK_VECTOR(float)
TK_VECTOR(int32_t)
TK_VECTOR(uint32_t)
TK_VECTOR(uint16_t)
#undef TK_VECTOR
template <class T>
using Vector = typename VectorOf<T>::type;
using Words = Vector<uint32_t>;

template <class T>
Vector<T>& vector_at(T* elements) {
  return *reinterpret_cast<Vector<T>*>(elements);
}

// Rows or columns of an operand: by k, then by row or column.
template <class T>
struct Operand {
  alignas(32) T at[kMaxWords * kMaxElements][kBlock];
};

// What a worker's scratch memory holds.
template <class T>
struct Scratch {
  alignas(32) T sum[kBlock][kBlock];
  Operand<T> a, b;
  Operand<uint32_t> words;  // of a or b, before they are unpacked
};

// ------------------------------------------------------------------------------------------------- types of elements

#if defined(__F16C__)
Vector<float> widen_halves(Vector<uint16_t> halves) {
  return reinterpret_cast<Vector<float>>(_mm256_cvtph_ps(reinterpret_cast<__m128i>(halves)));
}
#else
Vector<float> widen_halves(Vector<uint16_t> halves) {
  Vector<float> wide;
  for (int i = 0; i < kVector; ++i) wide[i] = tk::cpu::half_to_float(halves[i]);
  return wide;
}
#endif

// Each says how many elements a word has, and what number element e of a word is.

struct F16 {
  using Number = float;
  static constexpr int per_word = 2;
  static Vector<float> unpack(Words words, int e) {
    return widen_halves(__builtin_convertvector(words >> 16 * e & 0xffff, Vector<uint16_t>));
  }
};

struct BF16 {
  using Number = float;
  static constexpr int per_word = 2;
  static Vector<float> unpack(Words words, int e) {
    return reinterpret_cast<Vector<float>>(e ? words & 0xffff0000 : words << 16);
  }
};

// The hardware takes no notice of the bits that a tf32 does not have.
struct TF32 {
  using Number = float;
  static constexpr int per_word = 1;
  static Vector<float> unpack(Words words, int) { return reinterpret_cast<Vector<float>>(words & 0xffffe000); }
};

// Sums are unsigned because they wrap.
struct I8 {
  using Number = uint32_t;
  static constexpr int per_word = 4;
  static Vector<uint32_t> unpack(Words words, int e) {
    const auto top = reinterpret_cast<Vector<int32_t>>(words << 8 * (3 - e));
    return reinterpret_cast<Vector<uint32_t>>(top >> 24);
  }
};

// A pair of neighboring sums in a lane's registers, of the same type or of half its width.

template <class T>
struct Wide {
  static constexpr int bytes = 8;
  static constexpr bool rounds = false;
  static void load(T* to, const uint8_t* from) { memcpy(to, from, 8); }
  static void store(uint8_t* to, const T* from) { memcpy(to, from, 8); }
};

struct Halves {
  static constexpr int bytes = 4;
  static constexpr bool rounds = true;
  static void load(float* to, const uint8_t* from) {
    uint16_t pair[2];
    memcpy(pair, from, 4);
    for (int i = 0; i < 2; ++i) to[i] = tk::cpu::half_to_float(pair[i]);
  }
  static void store(uint8_t* to, const float* from) {
    const uint16_t pair[2] = {tk::cpu::float_to_half(from[0]), tk::cpu::float_to_half(from[1])};
    memcpy(to, pair, 4);
  }
};

// ------------------------------------------------------------------------------------------------------- fragments

// What each lane left for the last one.
struct Lane {
  const tk_mma_tile* tile;
  uint8_t *d, *a, *b, *c;
};

const Lane& lane_of(const Collective& c, int lane) { return *reinterpret_cast<const Lane*>(c.value[lane]); }

// Where a fragment lies in the registers of a lane: `begin` bytes after the first, its words `stride` bytes apart.
struct Place {
  int32_t begin, stride;
};

// Put a lane's words of one fragment of A or B where they belong, `rows` rows or columns on.
template <int kWords, int kHalves>
void gather(Operand<uint32_t>& words, int rows, int lane, const uint8_t* registers, Place place) {
#pragma GCC unroll 4
  for (int r = 0; r < kWords / 4 * kHalves; ++r) {
    const int word = lane % 4 + r / kHalves * 4, row = lane / 4 + r % kHalves * kRows;
    memcpy(&words.at[word][rows + row], registers + place.begin + r * place.stride, 4);
  }
}

// The numbers in `words` words of `count` rows or columns.
template <class Element>
void unpack(Operand<typename Element::Number>& to, Operand<uint32_t>& from, int words, int count) {
  for (int w = 0; w < words; ++w) {
    for (int i = 0; i < count; i += kVector) {
      for (int e = 0; e < Element::per_word; ++e) {
        vector_at(&to.at[w * Element::per_word + e][i]) = Element::unpack(vector_at(&from.at[w][i]), e);
      }
    }
  }
}

// -------------------------------------------------------------------------------------------------- multiplication

// sum += a * b for 4 rows and `kVectors` vectors of columns. Unrolled, so that the sums stay in registers meanwhile.
template <class T, int kVectors>
void multiply_strip(Scratch<T>& s, int row, int column, int depth) {
  Vector<T> sum[4][kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < 4 * kVectors; ++i) {
    sum[i / kVectors][i % kVectors] = vector_at(&s.sum[row + i / kVectors][column + i % kVectors * kVector]);
  }
  for (int k = 0; k < depth; ++k) {
#pragma GCC unroll 8
    for (int i = 0; i < 4 * kVectors; ++i) {
      sum[i / kVectors][i % kVectors] +=
          s.a.at[k][row + i / kVectors] * vector_at(&s.b.at[k][column + i % kVectors * kVector]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < 4 * kVectors; ++i) {
    vector_at(&s.sum[row + i / kVectors][column + i % kVectors * kVector]) = sum[i / kVectors][i % kVectors];
  }
}

template <class T>
void multiply(Scratch<T>& s, int rows, int columns, int depth) {
  for (int row = 0; row < rows; row += 4) {
    int column = 0;
    for (; column + 2 * kVector <= columns; column += 2 * kVector) multiply_strip<T, 2>(s, row, column, depth);
    if (column < columns) multiply_strip<T, 1>(s, row, column, depth);
  }
}

// ------------------------------------------------------------------------------------------------------------ tiles

// One kind of instruction: kHalves times 8 rows, 8 columns, kWords words of k.
template <class Element, class Sums, int kHalves, int kWords>
struct Mma {
  using T = typename Element::Number;
  static_assert(sizeof(Scratch<T>) <= kScratchBytes);
  static constexpr int kInstructionRows = kRows * kHalves;

  // Part of a tile that fits into the scratch memory: instructions [m, m_end) x [n, n_end).
  struct Part {
    int m, m_end, n, n_end;
  };

  static void gather_operands(const Collective& c, const Part& part, int k, Scratch<T>& s) {
    for (int lane = 0; lane < kWarpSize; ++lane) {
      const Lane mine = lane_of(c, lane);
      for (int m = part.m; m < part.m_end; ++m) {
        const Place place = {m * mine.tile->am + k * mine.tile->ak, mine.tile->ar};
        gather<kWords, kHalves>(s.words, (m - part.m) * kInstructionRows, lane, mine.a, place);
      }
    }
    unpack<Element>(s.a, s.words, kWords, (part.m_end - part.m) * kInstructionRows);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      const Lane mine = lane_of(c, lane);
      for (int n = part.n; n < part.n_end; ++n) {
        const Place place = {n * mine.tile->bn + k * mine.tile->bk, mine.tile->br};
        gather<kWords, 1>(s.words, (n - part.n) * kRows, lane, mine.b, place);
      }
    }
    unpack<Element>(s.b, s.words, kWords, (part.n_end - part.n) * kRows);
  }

  // Visit each pair of sums of a part: its place in the scratch memory, and in a lane's registers.
  template <class Visit>
  static void for_each_pair(const Collective& c, const Part& part, Scratch<T>& s, Visit visit) {
    for (int lane = 0; lane < kWarpSize; ++lane) {
      const Lane mine = lane_of(c, lane);
      const tk_mma_tile tile = *mine.tile;
      for (int m = part.m; m < part.m_end; ++m) {
        for (int half = 0; half < kHalves; ++half) {
          T* const row = s.sum[(m - part.m) * kInstructionRows + half * kRows + lane / 4] + lane % 4 * 2;
          for (int n = part.n; n < part.n_end; ++n) {
            visit(row + (n - part.n) * kRows, mine, m * tile.dm + n * tile.dn + half * Sums::bytes);
          }
        }
      }
    }
  }

  static void round_sums(Scratch<T>& s, int rows, int columns) {
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; j += 2) {
        uint8_t pair[Sums::bytes];
        Sums::store(pair, &s.sum[i][j]);
        Sums::load(&s.sum[i][j], pair);
      }
    }
  }

  static void run_part(const Collective& c, const Part& part, int ki) {
    Scratch<T>& s = *reinterpret_cast<Scratch<T>*>(tk_worker->scratch);
    const int rows = (part.m_end - part.m) * kInstructionRows, columns = (part.n_end - part.n) * kRows;
    for_each_pair(c, part, s, [](T* sums, const Lane& lane, int at) { Sums::load(sums, lane.c + at); });
    for (int k = 0; k < ki; ++k) {
      gather_operands(c, part, k, s);
      multiply(s, rows, columns, kWords * Element::per_word);
      if (Sums::rounds) round_sums(s, rows, columns);
    }
    for_each_pair(c, part, s, [](T* sums, const Lane& lane, int at) { Sums::store(lane.d + at, sums); });
  }

  static void run(Collective& c) {
    require_whole_warp(c);
    const tk_mma_tile& tile = *lane_of(c, 0).tile;
    constexpr int m_step = kBlock / kInstructionRows, n_step = kBlock / kRows;
    for (int m = 0; m < tile.mi; m += m_step) {
      for (int n = 0; n < tile.ni; n += n_step) {
        const int m_end = m + m_step < tile.mi ? m + m_step : tile.mi;
        const int n_end = n + n_step < tile.ni ? n + n_step : tile.ni;
        run_part(c, {m, m_end, n, n_end}, tile.ki);
      }
    }
    tk_worker->counters.mma += static_cast<uint64_t>(tile.mi) * tile.ni * tile.ki;
  }
};

void (*const kRun[])(Collective&) = {  // in the order of tk_mma_kind
    Mma<F16, Wide<float>, 2, 8>::run,
    Mma<F16, Halves, 2, 8>::run,
    Mma<BF16, Wide<float>, 2, 8>::run,
    Mma<TF32, Wide<float>, 2, 8>::run,
    Mma<I8, Wide<uint32_t>, 2, 8>::run,
    Mma<I8, Wide<uint32_t>, 2, 4>::run,
    Mma<I8, Wide<uint32_t>, 1, 4>::run,
};

}  // namespace

TK_EXPORT void tk_rt_mma(const tk_mma_tile* tile, void* d, const void* a, const void* b, const void* c, int line) {
  const auto bytes = [](const void* p) { return static_cast<uint8_t*>(const_cast<void*>(p)); };
  const Lane mine = {tile, bytes(d), bytes(a), bytes(b), bytes(c)};
  current_fiber().line = line;
  const int size = (tile->mi * 256 + tile->ni) * 256 + tile->ki;  // lanes must agree on it
  collective(kAllLanes, "mma", line, kRun[tile->kind], tile->kind, size, reinterpret_cast<uint64_t>(&mine), 0);
}
