//! The table of metrics in the guide is the one in the code.

#[test]
fn the_guide_has_the_metrics() {
    numakit_testing::guide::check_part(
        "docs/guide/serve.md",
        "metrics",
        &numakit_scrape::guide::metrics_guide(),
    );
}
