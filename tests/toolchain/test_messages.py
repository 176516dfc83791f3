# SPDX-License-Identifier: Apache-2.0
from tilekit.toolchain.messages import Message, Severity, compile_failure, locate_ptx, parse

NVRTC = """\
source.cu(4): error: no instance of function template "tk::g" matches the argument list
            argument types are: (int)
    tk::g(n);
    ^
/opt/env/tilekit/include/tk/x.h(2): note #3327-D: candidate function template "tk::g" failed deduction
   template<int N> __device__ int g(A<N>){return N;} }
                                  ^

source.cu(3): warning #177-D: variable "i" was declared but never referenced
    int i = threadIdx.x;
        ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

/opt/env/tilekit/include/tk/x.h(1): error: expression must have class type but it has type "int"
  template<class T> __device__ void f(T x){ x.foo(); }
                                            ^
          detected during instantiation of "void tk::f(T) [with T=int]" at line 9 of source.cu

2 errors detected in the compilation of "source.cu".
"""

GNU = """\
source.cu: In function 'void k(float*, int)':
source.cu:5:8: error: no matching function for call to 'g(int&)'
    5 |   tk::g(n);
      |   ~~~~~^~~
In file included from source.cu:1:
./tk/x.h:3:29: note: candidate: 'template<int N> int tk::g(A<N>)'
./tk/x.h: In instantiation of 'void tk::f(T) [with T = int]':
source.cu:4:8:   required from here
./tk/x.h:2:84: error: request for member 'foo' in 'x', which is of non-class type 'int'
source.cu:6:18: error: 'z' was not declared in this scope
"""

CLANG = """\
In file included from source.cu:1:
./tk/x.h:2:84: error: member reference base type 'int' is not a structure or union
    2 | template<class T> inline void f(T x){ x.foo(); }
      |                                       ~^~~~
source.cu:4:7: note: in instantiation of function template specialization 'tk::f<int>' requested here
    4 |   tk::f(n);
      |       ^
1 error generated.
"""

PTXAS = """\
ptxas application ptx input, line 6; error   : Unknown modifier '.bar'
ptxas application ptx input, line 6; error   : Not a name of any known instruction: 'foo'
ptxas fatal   : Ptx assembly aborted due to errors
"""

PTX = """\
.visible .entry k(
{
\t.loc\t1 3 3
\t.loc\t1 4 3
\t.loc\t2 3 2, function_name $L__info_string0, inlined_at 1 7 5
\tfoo.bar.b32 %r1;
}
\t.file\t1 "/home/someone/source.cu"
\t.file\t2 "/opt/tk/x.h"
"""


def errors(messages: tuple[Message, ...]) -> list[Message]:
    return [message for message in messages if message.severity is Severity.ERROR]


def test_an_nvrtc_error_has_line_column_and_its_whole_text() -> None:
    first = errors(parse(NVRTC))[0]
    assert (first.line, first.col, first.source_line) == (4, 3, 4)
    assert first.text.endswith("matches the argument list argument types are: (int)")


def test_an_nvrtc_error_in_a_header_names_the_source_line_that_instantiated_it() -> None:
    second = errors(parse(NVRTC))[1]
    assert (second.file, second.line, second.source_line) == ("tk/x.h", 1, 9)


def test_severities_are_told_apart() -> None:
    assert [message.severity for message in parse(NVRTC)] == [
        Severity.ERROR,
        Severity.NOTE,
        Severity.WARNING,
        Severity.ERROR,
    ]


def test_end_of_source_is_an_error_without_a_line() -> None:
    (message,) = parse('At end of source: error: expected a "}"\n1 error detected in the compilation of "source.cu".')
    assert (message.line, message.file, message.text) == (0, "source.cu", 'expected a "}"')


def test_a_missing_header_is_an_error() -> None:
    (message,) = parse(
        'source.cu(1): catastrophic error: cannot open source file "nope.h"\n  #include <nope.h>\n' + " " * 19 + "^\n"
    )
    assert (message.line, message.severity) == (1, Severity.ERROR)


def test_gnu_errors_have_line_and_column() -> None:
    first, second, third = errors(parse(GNU))
    assert (first.line, first.col, first.source_line) == (5, 8, 5)
    assert (third.line, third.source_line, third.text) == (6, 6, "'z' was not declared in this scope")
    assert (second.file, second.line, second.source_line) == ("tk/x.h", 2, 4), (
        "g++ names the instantiation before the error"
    )


def test_clang_names_the_instantiation_after_the_error() -> None:
    (message,) = parse(CLANG)
    assert (message.file, message.line, message.source_line) == ("tk/x.h", 2, 4)


def test_a_path_in_front_of_the_source_is_dropped() -> None:
    (message,) = parse("/tmp/somewhere/source.cu:12:1: error: expected '}' at end of input")
    assert (message.file, message.line) == ("source.cu", 12)


def test_the_linker_is_understood_and_its_summary_left_out() -> None:
    log = (
        "/usr/bin/ld: /tmp/cc1.o: in function `k':",
        "/home/x/source.cu:2: undefined reference to `f(int)'",
        "collect2: error: ld returned 1 exit status",
    )
    (message,) = parse("\n".join(log))
    assert (message.line, message.text) == (2, "undefined reference to `f(int)'")


def test_a_ptxas_error_finds_its_source_line_through_inlined_functions() -> None:
    messages = locate_ptx(parse(PTXAS), PTX)
    assert [(message.line, message.source_line) for message in messages] == [(6, 7), (6, 7)]


def test_a_lone_summary_is_kept() -> None:
    (message,) = parse("ptxas fatal   : Unresolved extern function 'h'\n")
    assert (message.file, message.severity) == ("", Severity.ERROR)


def test_ptxas_figures_are_no_messages() -> None:
    assert parse("ptxas info    : Used 12 registers, used 1 barriers, 128 bytes smem\n") == ()


def test_the_first_error_is_the_headline_with_its_line() -> None:
    error = compile_failure("NVRTC", NVRTC.split("/opt/env")[-1].replace("/tilekit", "/opt/tilekit"))
    assert error.code == "TK501"
    assert error.message == 'source.cu line 9: expression must have class type but it has type "int"'
    assert "NVRTC points at tk/x.h:1:43" in str(error)


def test_further_errors_are_counted_and_carried() -> None:
    error = compile_failure("g++", GNU)
    assert error.message == "source.cu line 5: no matching function for call to 'g(int&)' (and 2 more errors)"
    carried = error.data["messages"]
    assert isinstance(carried, tuple)
    assert len(errors(carried)) == 3


def test_output_that_nobody_understands_is_shown_whole() -> None:
    assert compile_failure("g++", "Segmentation fault\n").message == "g++ failed: Segmentation fault"
