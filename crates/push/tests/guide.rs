//! The table of engines in the guide is the one in the code.

#[test]
fn the_guide_has_the_engines() {
    numakit_testing::guide::check_part("docs/guide/push.md", "engines", &numakit_push::engines_guide());
}
