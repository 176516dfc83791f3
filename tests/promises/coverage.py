# SPDX-License-Identifier: Apache-2.0
"""Which test holds which sentence of the compiler's promises.

Sentences are numbered within their heading, in the order of the page; a sentence of a list item is counted like any
other, code is not. A sentence that no program can check has the reason in place of its tests.
"""

Tests = tuple[str, ...]

COVERAGE: dict[str, dict[int, Tests | str]] = {
    "Cache": {
        1: ("test_cache.py::test_a_generated_kernel_is_kept_for_whoever_asks_for_the_same_one",),
        2: ("test_cache.py::test_the_source_lies_in_the_folder_that_the_option_names",),
    },
    "Cache structure": {
        1: ("test_cache_structure.py::test_a_folder_in_scripts_shows_the_tuning_space",),
        2: ("test_cache_structure.py::test_a_folder_in_scripts_leads_to_every_program_made_from_it",),
        3: (
            "test_cache_structure.py::test_each_folder_in_programs_is_one_schedule",
            "test_cache_structure.py::test_programs_has_every_schedule_of_the_space",
        ),
        4: (
            "test_cache_structure.py::test_specializations_have_a_manifest_to_restart_from",
            "test_cache_structure.py::test_specializations_hold_every_program_as_ir_that_reads_back",
        ),
    },
    "Tips": {
        1: ("test_tips.py::test_the_directory_may_be_deleted_between_any_two_calls",),
        2: (
            "test_tips.py::test_a_deleted_program_is_generated_again",
            "test_tips.py::test_a_rerun_after_a_deletion_writes_the_source_again",
        ),
        3: ("test_tips.py::test_debug_schedule_compiles_that_one_alone",),
        4: (
            "test_tips.py::test_a_key_has_the_fingerprint_of_the_back_end",
            "test_tips.py::test_a_key_has_the_fingerprint_of_the_front_end",
        ),
        5: (
            "test_tips.py::test_an_edit_behind_the_ir_gives_programs_another_key",
            "test_tips.py::test_an_edit_before_the_ir_makes_specializations_stale_and_programs_not",
            "test_tips.py::test_what_comes_before_the_ir_is_not_in_the_key_of_a_program",
        ),
        6: (
            "test_tips.py::test_another_process_finds_the_programs_of_the_same_compiler",
            "test_tips.py::test_hashes_of_files_are_persisted",
        ),
        7: (
            "test_tips.py::test_a_process_validates_the_metadata_of_a_file_once_for_both_stages",
            "test_tips.py::test_only_a_changed_file_is_read",
            "test_tips.py::test_only_changed_directories_are_hashed_again",
        ),
        8: ("test_tips.py::test_what_is_in_the_cache_starts_no_worker",),
        9: (
            "test_tips.py::test_three_schedules_start_at_most_three_workers",
            "test_tips.py::test_a_pool_has_no_more_workers_than_jobs",
        ),
        10: ("test_tips.py::test_a_specialization_is_transpiled_once",),
        11: (
            "test_tips.py::test_each_part_of_a_key_changes_the_program",
            "test_tips.py::test_a_key_covers",
        ),
        12: ("test_tips.py::test_what_cannot_be_tracked_is_transpiled_again",),
        13: ("test_tips.py::test_what_is_transpiled_again_still_finds_its_program",),
    },
    "Compilation Pipeline": {
        1: ("test_compilation_pipeline.py::test_build_program_takes_six_steps_in_order",),
        2: ("test_compilation_pipeline.py::test_a_program_that_breaks_a_rule_meets_no_pass",),
        3: ("test_compilation_pipeline.py::test_optimize_program_runs_the_default_passes",),
        4: ("test_compilation_pipeline.py::test_generate_ir_module_lowers_to_hidet_ir",),
        5: ("test_compilation_pipeline.py::test_optimize_ir_module_runs_passes_over_hidet_ir",),
        6: ("test_compilation_pipeline.py::test_the_source_is_cuda_c",),
        7: (
            "test_compilation_pipeline.py::test_a_library_is_compiled_for_the_cpu",
            "test_compilation_pipeline.py::test_a_library_is_compiled_by_nvcc_for_whoever_asks",
        ),
    },
    "Tilus IR Structure": {
        1: ("test_tilus_ir_structure.py::test_a_program_is_a_frozen_dict_of_functions",),
        2: ("test_tilus_ir_structure.py::test_a_function_has_name_params_body_and_metadata",),
        3: (
            "test_tilus_ir_structure.py::test_a_statement_is_a_frozen_dataclass",
            "test_tilus_ir_structure.py::test_no_field_of_a_statement_can_be_set",
        ),
        4: ("test_tilus_ir_structure.py::test_an_instruction_stands_in_the_tree_inside_an_inst_stmt",),
        5: ("test_tilus_ir_structure.py::test_an_instruction_has_an_output_or_none_inputs_and_attributes",),
        6: (
            "test_tilus_ir_structure.py::test_functional_instructions_are_on_an_explicit_list",
            "test_tilus_ir_structure.py::test_a_slice_of_registers_is_functional",
        ),
        7: ("test_tilus_ir_structure.py::test_the_list_decides_and_not_whether_there_is_an_output",),
        8: ("test_tilus_ir_structure.py::test_stores_and_barriers_have_side_effects",),
        9: ("test_tilus_ir_structure.py::test_side_effects_outlive_the_whole_pipeline",),
        10: (
            "test_tilus_ir_structure.py::test_a_tensor_class_is_frozen_and_compares_by_identity",
            "test_tilus_ir_structure.py::test_equal_tensors_are_not_the_same",
        ),
    },
    "Writing Passes": {
        1: (
            "test_writing_passes.py::test_a_pass_overrides_process_function",
            "test_writing_passes.py::test_a_pass_without_process_function_changes_nothing",
        ),
        2: ("test_writing_passes.py::test_a_rewriter_lives_in_functor_and_visits_by_class",),
        3: (
            "test_writing_passes.py::test_a_rewriter_lives_in_functor_and_visits_by_class",
            "test_writing_passes.py::test_a_rewriter_that_overrides_nothing_returns_the_same_object",
        ),
        4: ("test_writing_passes.py::test_the_memo_goes_by_identity",),
        5: ("test_writing_passes.py::test_every_instruction_is_rewritten_by_visit_instruction",),
        6: (
            "test_writing_passes.py::test_an_inst_stmt_visits_its_instruction",
            "test_writing_passes.py::test_a_visitor_that_returns_none_leaves_an_empty_sequence",
        ),
        7: ("test_writing_passes.py::test_visit_with_the_name_of_an_instruction_class_takes_it_alone",),
        8: ("test_writing_passes.py::test_a_visitor_dispatches_alike_and_returns_nothing",),
        9: (
            "test_writing_passes.py::test_every_pass_is_registered_and_its_factory_exported",
            "test_writing_passes.py::test_a_registered_pass_runs_in_every_compile",
        ),
        10: ("test_tilus_ir_structure.py::test_equal_tensors_are_not_the_same",),
        11: ("test_writing_passes.py::test_tensors_that_look_alike_stay_two_in_the_memo",),
    },
    "IRVisitor/IRRewriter Pitfalls": {
        1: (
            "test_visitor_and_rewriter_pitfalls.py::test_visit_expr_is_a_no_op_in_a_visitor",
            "test_visitor_and_rewriter_pitfalls.py::test_a_visitor_does_not_descend_into_an_expression",
        ),
        2: ("test_visitor_and_rewriter_pitfalls.py::test_hidet_collects_the_variables_of_our_expressions",),
        3: ("test_visitor_and_rewriter_pitfalls.py::test_the_memo_prevents_visiting_again",),
        4: ("test_visitor_and_rewriter_pitfalls.py::test_the_memo_prevents_visiting_again",),
        5: (
            "test_visitor_and_rewriter_pitfalls.py"
            "::test_variables_are_found_in_every_place_by_collecting_from_attributes",
        ),
        6: ("test_visitor_and_rewriter_pitfalls.py::test_instructions_hold_expressions_outside_their_tensors",),
        7: (
            "test_visitor_and_rewriter_pitfalls.py::test_attributes_are_all_fields_that_are_neither_output_nor_inputs",
        ),
        8: ("test_visitor_and_rewriter_pitfalls.py::test_a_variable_that_only_an_attribute_uses_is_alive",),
        9: ("test_visitor_and_rewriter_pitfalls.py::test_a_tensor_item_statement_binds_a_variable",),
        10: ("test_visitor_and_rewriter_pitfalls.py::test_a_tensor_item_statement_binds_a_variable",),
        11: (
            "test_visitor_and_rewriter_pitfalls.py::test_an_item_that_is_used_keeps_its_statement_and_its_tensor_alive",
            "test_visitor_and_rewriter_pitfalls.py::test_an_item_that_is_not_used_keeps_neither",
        ),
    },
    "Testing Passes": {
        1: ("test_testing_passes.py::test_ir_is_built_by_create_and_verifies",),
        2: ("test_testing_passes.py::test_the_test_of_dead_code_elimination_is_an_example",),
        3: ("test_testing_passes.py::test_collect_instructions_counts_by_type_after_a_pass",),
        4: (
            "test_testing_passes.py::test_jit_instance_for_gives_the_program_without_compiling",
            "test_testing_passes.py::test_there_is_a_transpiled_program_for_every_schedule",
        ),
    },
    "Dumping IR after each pass": {
        1: (
            "test_dumping_ir_after_each_pass.py::test_nothing_is_dumped_unless_asked_for",
            "test_dumping_ir_after_each_pass.py::test_calling_dump_ir_before_a_kernel_is_enough",
        ),
        2: (
            "test_dumping_ir_after_each_pass.py::test_the_ir_after_each_pass_is_dumped",
            "test_dumping_ir_after_each_pass.py::test_a_dumped_program_reads_back",
            "test_dumping_ir_after_each_pass.py::test_a_kernel_that_was_compiled_before_is_dumped_too",
        ),
    },
    "Proxy fence required between `store_shared` and `tma.shared_to_global`": {
        1: ("test_proxy_fence.py::test_with_the_fence_the_copy_is_right",),
        2: ("test_proxy_fence.py::test_the_fence_is_the_one_that_ptx_names",),
        3: ("test_proxy_fence.py::test_without_the_fence_the_check_names_it",),
    },
    "Skills": {
        1: "a command of a programming assistant, no part of the compiler",
        2: "how that command is called",
    },
    "Testing After Refactors": {
        1: (
            "test_testing_after_refactors.py::test_the_smoke_test_has_its_place",
            "test_testing_after_refactors.py::test_the_smoke_test_runs_before_everything_else",
        ),
        2: "what people do when it fails",
    },
    "Before Committing": {
        1: ("test_before_committing.py::test_pre_commit_runs_the_linters_and_the_formatter",),
        2: ("test_before_committing.py::test_hooks_look_and_change_nothing",),
    },
}
