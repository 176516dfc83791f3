# SPDX-License-Identifier: Apache-2.0
"""Which test holds which sentence of the promises about the trace.

Sentences are numbered within their heading, in the order of the page; a sentence of a list item and a row of a table
are counted like any other, code is not. A test that lies elsewhere has its path below `tests/`. A sentence that no
program can check has the reason in place of its tests.
"""

Tests = tuple[str, ...]

_SWITCH = "tools/lower_trace/test_switch.py::"
_CHAIN = "tools/lower_trace/test_chain.py::"
_TAGS = "tools/lower_trace/test_tags.py::"
_EDITS = "tools/lower_trace/test_edits.py::"
_CRASHES = "tools/lower_trace/test_crashes.py::"
_PAGE = "browser/test_trace_report.py::"
_DIFF = "browser/test_trace_diff.py::"
_TERMINAL = "tools/lower_trace/test_terminal.py::"

COVERAGE: dict[str, dict[int, Tests | str]] = {
    "IR Lower Trace": {
        1: ("test_ir_lower_trace.py::test_each_pass_that_changed_the_ir_is_shown_with_what_it_changed",),
        2: (
            "test_ir_lower_trace.py::test_every_pass_of_the_pipeline_is_captured",
            "test_ir_lower_trace.py::test_the_report_is_in_the_terminal_and_on_a_page",
        ),
        3: ("test_observe_the_lowering_pipeline.py::test_a_variable_before_the_script_is_enough",),
        4: "it speaks of another tool",
        5: "what follows are the additions",
        6: ("test_ir_lower_trace.py::test_a_pass_is_tagged_with_its_phase",),
        7: ("test_ir_lower_trace.py::test_the_generated_source_is_on_the_disk",),
        8: (f"{_TAGS}test_case_96_a_script_that_runs_again_says_that_it_is_patched",),
        9: ("test_ir_lower_trace.py::test_later_compiles_of_a_process_have_prefixes",),
        10: ("test_ir_lower_trace.py::test_the_ir_around_every_pass_is_on_the_disk",),
        11: (f"{_CRASHES}test_case_53_a_process_that_is_killed_loses_no_pass_that_was_finished",),
        12: (
            f"{_PAGE}test_case_95_tabs_badges_and_signs_say_and_choose_what_is_listed",
            f"{_PAGE}test_case_76_95_keys_go_through_passes_phases_and_what_is_folded",
            f"{_DIFF}test_case_77_several_pins_by_mouse_stay_in_order_or_are_refused_and_survive_a_reload",
        ),
    },
    "Observe the Lowering Pipeline": {
        1: ("test_observe_the_lowering_pipeline.py::test_a_variable_before_the_script_is_enough",),
        2: (f"{_SWITCH}test_case_01_a_word_in_the_environment_switches_it_on",),
        3: ("test_observe_the_lowering_pipeline.py::test_a_variable_that_is_set_too_late_traces_nothing",),
        4: ("test_observe_the_lowering_pipeline.py::test_a_link_leads_to_the_latest_report",),
        5: "what a person does with the page",
        6: (
            "test_observe_the_lowering_pipeline.py::test_a_value_of_the_variable_means_a_mode",
            "test_observe_the_lowering_pipeline.py::test_the_default_is_off",
        ),
        7: (
            "test_observe_the_lowering_pipeline.py::test_a_variable_says_where_everything_goes",
            "tools/lower_trace/test_settings.py::test_everything_has_a_default",
        ),
    },
    "Output Directory Structure": {
        1: ("test_output_directory_structure.py::test_a_run_leaves_this_layout",),
        2: (
            "test_output_directory_structure.py::test_each_phase_has_a_folder",
            "test_output_directory_structure.py::test_passes_are_numbered_through_the_run",
        ),
        3: ("test_output_directory_structure.py::test_generated_source_is_written_as_cpp_and_the_rest_as_tir",),
    },
    "Programmatic API": {
        1: (f"{_CHAIN}test_case_91_one_pass", f"{_SWITCH}test_case_92_enabling_twice_is_enabling_once"),
    },
    "One-shot: `lower_trace()`": {
        1: (f"{_CHAIN}test_case_91_a_list_of_passes", f"{_CHAIN}test_case_91_nothing_is_hooked"),
        2: (f"{_CHAIN}test_case_91_a_function_alone", f"{_CHAIN}test_case_91_hidet_ir"),
        3: (
            f"{_CHAIN}test_case_91_one_pass",
            f"{_CHAIN}test_case_91_a_list_of_passes",
            f"{_CHAIN}test_case_91_passes_with_names",
        ),
        4: (f"{_CHAIN}test_case_91_the_default_is_to_print", f"{_CHAIN}test_case_91_both"),
        5: (f"{_CHAIN}test_case_91_context",),
        6: (f"{_CHAIN}test_case_91_a_page_lies_where_one_says",),
        7: (f"{_CHAIN}test_case_91_one_pass",),
    },
    "Global hook: `enable()` / `disable()` / `reset()`": {
        1: (f"{_SWITCH}test_case_92_the_page_is_made_at_exit",),
        2: (f"{_SWITCH}test_case_92_what_is_not_given_is_as_the_environment_says",),
        3: (f"{_SWITCH}test_case_92_no_mode_disables",),
        4: (f"{_SWITCH}test_case_92_what_is_not_given_is_as_the_environment_says",),
        5: (
            f"{_SWITCH}test_case_92_the_source_is_kept_where_one_says",
            f"{_SWITCH}test_case_92_the_source_lies_beside_the_page",
            f"{_SWITCH}test_case_92_the_source_is_not_kept_where_nobody_wants_it",
        ),
        6: (f"{_SWITCH}test_case_92_enabling_twice_is_enabling_once",),
    },
    "When to use `reset()` and `disable()`": {
        1: (f"{_SWITCH}test_case_92_the_page_is_made_at_exit",),
        2: (
            f"{_SWITCH}test_case_92_a_reset_begins_another_run",
            "test_how_it_works.py::test_the_compiles_of_a_process_stand_in_one_report",
        ),
        3: (
            f"{_SWITCH}test_case_92_nothing_is_traced_after_disabling",
            "test_how_it_works.py::test_disabling_leaves_nothing_behind",
        ),
        4: (f"{_SWITCH}test_case_92_the_page_is_made_at_exit",),
        5: "advice",
    },
    "HTML Report Features": {
        1: (f"{_PAGE}test_case_82_the_page_asks_for_nothing_and_two_renders_are_the_same_bytes",),
        2: (f"{_PAGE}test_case_95_tabs_badges_and_signs_say_and_choose_what_is_listed",),
        3: (f"{_PAGE}test_case_95_the_side_folds_and_is_dragged",),
        4: (f"{_PAGE}test_case_95_tabs_badges_and_signs_say_and_choose_what_is_listed",),
        5: (f"{_PAGE}test_case_95_tabs_badges_and_signs_say_and_choose_what_is_listed",),
        6: (
            f"{_DIFF}test_case_70_71_a_changed_line_is_one_row_with_only_its_changed_tokens_marked",
            f"{_DIFF}test_case_75_a_fold_opens_twenty_lines_at_the_chosen_end_until_none_is_left_and_all_closes_again",
        ),
        7: (
            f"{_PAGE}test_case_76_95_keys_go_through_passes_phases_and_what_is_folded",
            f"{_DIFF}test_case_77_several_pins_by_mouse_stay_in_order_or_are_refused_and_survive_a_reload",
        ),
        8: (f"{_PAGE}test_case_81_95_the_chosen_theme_is_kept_also_where_nothing_can_be_stored",),
        9: (f"{_PAGE}test_case_95_both_texts_are_copied_whole",),
        10: (f"{_PAGE}test_case_81_84_the_page_opens_at_the_failure_and_its_message_keeps_its_columns",),
    },
    "Codegen Source Capture & Edit-Recompile Workflow": {
        1: ("test_ir_lower_trace.py::test_the_generated_source_is_on_the_disk",),
        2: (
            "test_typical_workflow.py::test_one_run_leaves_the_source_to_be_read",
            f"{_SWITCH}test_case_92_the_source_is_kept_where_one_says",
        ),
        3: ("test_output_directory_structure.py::test_a_run_leaves_this_layout",),
        4: ("test_typical_workflow.py::test_an_edited_source_is_compiled_when_it_runs_again",),
        5: ("test_typical_workflow.py::test_the_baseline_stays_as_it_was_while_one_edits",),
        6: (f"{_EDITS}test_case_15_the_latest_text_is_written_again",),
        7: "what follows is the table",
        8: (f"{_EDITS}test_case_14_when_nothing_changed_nothing_is_written",),
        9: (f"{_EDITS}test_case_16_another_generated_text_takes_the_place_of_the_old",),
        10: (f"{_EDITS}test_case_17_an_edit_is_compiled",),
        11: (f"{_EDITS}test_case_19_an_edit_that_is_what_is_generated_now_is_in_sync",),
        12: (f"{_EDITS}test_case_20_an_edit_of_an_older_text_is_put_away",),
        13: (f"{_EDITS}test_case_13_a_first_run_writes_both_files",),
        14: (f"{_EDITS}test_case_26_a_file_of_unknown_origin_is_put_away",),
        15: (f"{_EDITS}test_case_21_what_was_put_away_before_stays",),
        16: (f"{_EDITS}test_case_26_a_file_of_unknown_origin_is_put_away",),
        17: (f"{_EDITS}test_case_20_an_edit_of_an_older_text_is_put_away",),
        18: ("test_typical_workflow.py::test_the_console_says_how_to_recover_it",),
    },
    "Typical Workflow": {
        1: ("test_typical_workflow.py::test_one_run_leaves_the_source_to_be_read",),
        2: ("test_typical_workflow.py::test_one_run_leaves_the_source_to_be_read",),
        3: ("test_typical_workflow.py::test_an_edited_source_is_compiled_when_it_runs_again",),
        4: ("test_typical_workflow.py::test_the_baseline_stays_as_it_was_while_one_edits",),
        5: ("test_typical_workflow.py::test_an_edited_source_is_compiled_when_it_runs_again",),
        6: ("test_typical_workflow.py::test_an_edited_source_is_compiled_when_it_runs_again",),
        7: ("test_typical_workflow.py::test_each_run_takes_the_edit_as_it_is_then",),
        8: ("test_typical_workflow.py::test_each_run_takes_the_edit_as_it_is_then",),
        9: "what follows are the two outcomes",
        10: ("test_typical_workflow.py::test_an_edit_that_is_generated_now_is_synced",),
        11: ("test_typical_workflow.py::test_an_edit_of_something_that_changed_is_a_conflict",),
        12: ("test_typical_workflow.py::test_an_edit_of_something_that_changed_is_a_conflict",),
        13: ("test_typical_workflow.py::test_the_console_says_how_to_recover_it",),
        14: ("test_typical_workflow.py::test_an_edit_runs_with_every_toolchain",),
        15: ("test_typical_workflow.py::test_an_edit_runs_with_every_toolchain",),
        16: "it speaks of a backend that compiles no source; there is none here",
        17: ("test_typical_workflow.py::test_an_edit_runs_with_every_toolchain",),
        18: "how to leave such a backend",
    },
    "How It Works": {
        1: ("test_how_it_works.py::test_disabling_leaves_nothing_behind",),
        2: (
            "test_how_it_works.py::test_the_texts_before_and_after_each_pass_are_counted",
            "test_ir_lower_trace.py::test_every_pass_of_the_pipeline_is_captured",
        ),
        3: ("test_how_it_works.py::test_passes_outside_of_a_compile_are_unscoped",),
        4: ("test_how_it_works.py::test_the_phase_is_that_of_the_compile_that_a_pass_runs_in",),
        5: "how another tool finds its phases; here each event says its own",
        6: ("test_typical_workflow.py::test_an_edited_source_is_compiled_when_it_runs_again",),
        7: ("test_how_it_works.py::test_records_are_made_as_passes_run",),
        8: (
            "test_how_it_works.py::test_the_report_is_there_after_every_pass",
            f"{_CRASHES}test_case_53_a_process_that_is_killed_loses_no_pass_that_was_finished",
        ),
        9: (
            "test_how_it_works.py::test_the_phase_is_that_of_the_compile_that_a_pass_runs_in",
            "test_how_it_works.py::test_the_compiles_of_a_process_stand_in_one_report",
        ),
        10: ("test_how_it_works.py::test_passes_are_seen_whoever_calls_them",),
        11: (f"{_SWITCH}test_case_02_off_is_free",),
        12: "advice",
    },
    "Choosing an Output Mode": {
        1: ("test_choosing_an_output_mode.py::test_a_mode_prints_or_makes_a_page_or_both",),
        2: ("test_choosing_an_output_mode.py::test_a_mode_prints_or_makes_a_page_or_both",),
        3: ("test_choosing_an_output_mode.py::test_a_mode_prints_or_makes_a_page_or_both",),
        4: ("test_choosing_an_output_mode.py::test_what_is_compared_is_text",),
        5: "what a change means",
    },
    "Tips": {
        1: (f"{_TERMINAL}test_case_101_a_diff_is_there_before_the_next_pass_has_run",),
        2: "what a page is good for",
        3: ("test_observe_the_lowering_pipeline.py::test_a_variable_says_where_everything_goes",),
        4: ("test_ir_lower_trace.py::test_every_pass_of_the_pipeline_is_captured",),
        5: "what a trace is good for",
        6: "it speaks of another tool",
    },
}
