//! Who may count what: `kernel.perf_event_paranoid` and CAP_PERFMON.
