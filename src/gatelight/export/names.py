"""Names and comments that are safe to put into generated source, whatever a circuit's labels are.

Class names are data from outside. They appear in comments only, never in code.

>>> check_identifier("net")
'net'
>>> comment("*/ system(0); //")
'__ system(0)_ __'
"""

from __future__ import annotations

import re

from gatelight.circuit import Circuit

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNSAFE = re.compile(r"[^A-Za-z0-9 _.,:+()-]")
_COMMENT_LENGTH = 80

_C_KEYWORDS = """
alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bitand bitor bool break case catch
char char16_t char32_t char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
constinit continue decltype default delete do double dynamic_cast else enum explicit export extern false float for
friend goto if inline int long main mutable namespace new noexcept not not_eq nullptr operator or or_eq private
protected public reflexpr register reinterpret_cast requires restrict return short signed sizeof static static_assert
static_cast struct switch synchronized template this thread_local throw true try typedef typeid typename typeof union
unsigned using virtual void volatile wchar_t while xor xor_eq
"""
_VERILOG_KEYWORDS = """
accept_on alias always always_comb always_ff always_latch and assert assign assume automatic before begin bind bins
binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle checker class clocking cmos config const
constraint context continue cover covergroup coverpoint cross deassign default defparam design disable dist do edge
else end endcase endchecker endclass endclocking endconfig endfunction endgenerate endgroup endinterface endmodule
endpackage endprimitive endprogram endproperty endsequence endspecify endtable endtask enum event eventually expect
export extends extern final first_match for force foreach forever fork forkjoin function generate genvar global highz0
highz1 if iff ifnone ignore_bins illegal_bins implements implies import incdir include initial inout input inside
instance int integer interconnect interface intersect join join_any join_none large let liblist library local
localparam logic longint macromodule matches medium modport module nand negedge nettype new nexttime nmos nor
noshowcancelled not notif0 notif1 null or output package packed parameter pmos posedge primitive priority program
property protected pull0 pull1 pulldown pullup pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase
randsequence rcmos real realtime ref reg reject_on release repeat restrict return rnmos rpmos rtran rtranif0 rtranif1
s_always s_eventually s_nexttime s_until s_until_with scalared sequence shortint shortreal showcancelled signed small
soft solve specify specparam static string strong strong0 strong1 struct super supply0 supply1 sync_accept_on
sync_reject_on table tagged task this throughout time timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand
trior trireg type typedef union unique unique0 unsigned until until_with untyped use uwire var vectored virtual void
wait wait_order wand weak weak0 weak1 while wildcard wire with within wor xnor xor
"""
KEYWORDS = frozenset((_C_KEYWORDS + _VERILOG_KEYWORDS).split())


def check_identifier(name: str) -> str:
    """Return ``name`` if it can be an identifier in C, C++, Verilog and SystemVerilog; raise ValueError otherwise."""
    if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
        raise ValueError(f"name must be letters, digits and underscores, no digit first, got {name!r}")
    if name in KEYWORDS:
        raise ValueError(f"name must not be a keyword of C, C++ or Verilog, got {name!r}")
    return name


def comment(text: str) -> str:
    """Text that neither ends a comment nor continues a line: one line of letters, digits and a few signs.

    What is replaced by ``_`` includes ``?``, because ``??/`` is a backslash in C99.
    """
    return _UNSAFE.sub("_", text)[:_COMMENT_LENGTH]


def class_lines(circuit: Circuit) -> list[str]:
    """One line of comment for each class: its number, outputs, bias and name."""
    lines = []
    for group in range(circuit.classes):
        start, stop = int(circuit.group_start[group]), int(circuit.group_start[group + 1])
        label = f", {comment(circuit.class_names[group])}" if circuit.class_names else ""
        lines.append(f"class {group}: outputs {start} to before {stop}, bias {int(circuit.bias[group])}{label}")
    return lines
