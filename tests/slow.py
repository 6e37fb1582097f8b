"""Which tests take long? A run of the whole suite leaves them out unless LATPCAP_TESTS=all; CI runs a part of them.

By file, names of test functions. They compare every case with another tool or try a thing from many sides; what each
holds is tried by a quicker test, too. A test that is named on the command line runs in any case.
"""

SLOW = {
    "test_anonymise.py": ("test_the_answer_stays",),
    "test_answer_view.py": (
        "test_the_command_reads_for_the_answer_alone",
        "test_the_same_answer_to_the_last_digit",
    ),
    "test_answers.py": ("test_every_number_of_an_answer_is_in_its_dict",),
    "test_batch_again.py": ("test_a_killed_run_goes_on_and_gives_the_same",),
    "test_cases.py": (
        "test_cut_off",
        "test_in_odd_blocks",
    ),
    "test_cli.py": (
        "test_exit_codes_of_the_program",
        "test_round_trips",
        "test_standard_input",
    ),
    "test_cookbook.py": ("test_task",),
    "test_counts.py": ("test_as_many_requests_as_tshark_counts",),
    "test_damage.py": (
        "test_corrupted",
        "test_corrupted_under_rare_link_types",
        "test_cut",
    ),
    "test_damaged_results.py": ("test_no_flipped_bit_reads_as_another_value",),
    "test_decrypt.py": (
        "test_commands_take_a_key_log",
        "test_tshark_opens_the_same",
    ),
    "test_downloads.py": ("test_capture_answer_and_picture",),
    "test_filters.py": (
        "test_an_error_shows_some_of_a_long_filter",
        "test_everyday_filters_choose_some_of_the_frames",
        "test_tshark_chooses_the_same",
        "test_two_ways_to_choose_the_same_segments",
    ),
    "test_flow_graph_pictures.py": (
        "test_letters_that_the_font_lacks_are_marked_and_stop_nothing",
        "test_pages_are_files_or_one_pdf",
    ),
    "test_guard.py": ("test_names_that_would_write_on_the_terminal",),
    "test_handshakes.py": ("test_connects_tell_of_tls_what_tshark_reads",),
    "test_hostile.py": (
        "test_captures",
        "test_outputs",
    ),
    "test_http2.py": ("test_tshark_counts_the_same_requests_and_answers",),
    "test_inputs_kept.py": ("test_an_output_that_is_an_input_is_refused",),
    "test_layers.py": ("test_every_limit_is_asked_by_some_rule",),
    "test_many_servers.py": ("test_a_server_more_is_little_work",),
    "test_notebooks.py": ("test_it_runs",),
    "test_owners.py": ("test_every_spoken_answer_has_paragraphs",),
    "test_page.py": ("test_it_works_in_a_browser",),
    "test_pasted.py": (
        "test_columns_have_the_numbers_of_the_capture",
        "test_exported_fields_are_those_of_the_capture",
    ),
    "test_portions.py": ("test_a_command_shows_the_same_for_any_portion",),
    "test_projection.py": (
        "test_a_stream_alone_is_that_of_the_whole",
        "test_an_exchange_is_drawn_of_its_stream_alone",
        "test_the_pictures_show_the_same",
    ),
    "test_properties.py": (
        "test_blocks_may_be_cut_anywhere",
        "test_flipped_bytes",
        "test_other_hosts_do_not_matter",
        "test_random_conversations_are_exact",
        "test_random_conversations_in_blocks",
        "test_truncated_anywhere",
        "test_truncated_sample",
    ),
    "test_quality.py": ("test_a_bad_recording_accuses_nobody",),
    "test_results.py": ("test_few_columns_answer_as_whole_tables_do",),
    "test_storms.py": (
        "test_a_packet_costs_as_much_as_others",
        "test_a_packet_of_a_slice_costs_as_much_as_others",
    ),
    "test_robustness.py": ("test_decoys_are_never_proven",),
    "test_schemas.py": (
        "test_answers_have_the_form",
        "test_tables_in_json_have_the_form",
    ),
    "test_secrets.py": ("test_no_output_of_any_command_shows_one",),
    "test_sentences.py": ("test_every_sentence_has_a_capture_that_prints_it",),
    "test_transfer_sweep.py": (
        "test_rates_and_round_trips",
        "test_the_limit_is_right_and_never_wrong_and_sure",
    ),
    "test_wireshark.py": (
        "test_cases",
        "test_more_unacknowledged_than_are_remembered",
        "test_random_captures",
        "test_random_conversations",
    ),
}
