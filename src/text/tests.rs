use super::*;

#[test]
fn hostile_text_is_shown_not_obeyed() {
    for (text, shown) in [
        ("plain_name.py", "plain_name.py"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\tb\nc\rd\0e", "a\\tb\\nc\\rd\\0e"),
        ("\u{9b}2J", "\\u{9b}2J"),
        ("gpj\u{202e}exe", "gpj\\u{202e}exe"),
        ("a\u{200b}b\u{2066}c\u{61c}d\u{feff}", "a\\u{200b}b\\u{2066}c\\u{61c}d\\u{feff}"),
        ("line\u{2028}paragraph\u{2029}", "line\\u{2028}paragraph\\u{2029}"),
        ("\x7f", "\\x7f"),
        ("kept \u{fffd} 模型 ☺\u{fe0f} é", "kept \u{fffd} 模型 ☺\u{fe0f} é"),
    ] {
        assert_eq!(escape_terminal(text), shown);
    }
}

#[test]
fn two_durations_share_their_unit() {
    for (low, high, text) in [
        (4_580_000, 4_660_000, "4.58 to 4.66 ms"),
        (970_000, 1_020_000, "970 µs to 1.02 ms"),
        (-5, 7, "-5 to 7 ns"),
        (123_000_000_000, 183_000_000_000, "2 min 03 s to 3 min 03 s"),
    ] {
        assert_eq!(durations(low, high), text);
    }
}

#[test]
fn durations_have_three_digits() {
    for (ns, text) in [
        (0, "0 ns"),
        (4, "4 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (3_214, "3.21 µs"),
        (9_994, "9.99 µs"),
        (9_995, "10.0 µs"),
        (99_950, "100 µs"),
        (999_499, "999 µs"),
        (999_500, "1.00 ms"),
        (12_449_999, "12.4 ms"),
        (1_834_000_000, "1.83 s"),
        (59_949_999_999, "59.9 s"),
        (59_950_000_000, "1 min 00 s"),
        (123_000_000_000, "2 min 03 s"),
        (3_599_499_999_999, "59 min 59 s"),
        (3_599_500_000_000, "1 h 00 min"),
        (-12_400_000, "-12.4 ms"),
        (i64::MAX, "2,562,047 h 47 min"),
        (i64::MIN, "-2,562,047 h 47 min"),
    ] {
        assert_eq!(duration(ns), text, "{ns} ns");
    }
}

#[test]
fn numbers_are_readable() {
    assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
    assert_eq!(counted(1, "wait"), "1 wait");
    assert_eq!(counted(0, "wait"), "0 waits");
    assert_eq!(
        [0.0, 0.04, 0.1, 12.34, 99.94, 99.95, 271.6, -3.21].map(percent),
        ["0 %", "<0.1 %", "0.1 %", "12.3 %", "99.9 %", ">99.9 %", "272 %", "-3.2 %"]
    );
    assert_eq!([f64::NAN, f64::INFINITY].map(percent), ["n/a", "n/a"]);
    assert_eq!(share(1, 0), "n/a");
    assert_eq!([0.951, 1.2, -1.0, f64::NAN].map(confidence), ["95 %", "100 %", "0 %", "?"]);
    assert_eq!(
        [0.0, 0.001, 0.333, 1.0, 2.5, 12.04, 1234.5].map(rate),
        ["0", "<0.01", "0.33", "1", "2.5", "12", "1,235"]
    );
    assert_eq!(
        [4, 1_023, 1_024, 524_288, 1_572_864, 33_554_432, 1_048_575, 1_234_567].map(bytes),
        ["4 B", "1023 B", "1 KiB", "512 KiB", "1.5 MiB", "32 MiB", "1 MiB", "1.18 MiB"]
    );
    assert_eq!(bytes(u64::MAX), "16 EiB");
    assert_eq!(timestamp(1_234_567_890), "1.234567890 s");
    assert_eq!(timestamp(-5), "-0.000000005 s");
    assert_eq!(timestamp(i64::MIN), "-9223372036.854775808 s");
}

#[test]
fn paths_lose_leading_components() {
    let path = "/opt/conda/lib/python3.12/site-packages/torch/_tensor.py";
    assert_eq!(shorten_path(path, 80), path);
    assert_eq!(shorten_path(path, 34), "…/site-packages/torch/_tensor.py");
    assert_eq!(shorten_path(path, 12), "…/_tensor.py");
    assert_eq!(shorten_path(path, 8), "_te…r.py");
    assert_eq!(shorten_path("C:\\work\\models\\llama.py", 17), "…\\models\\llama.py");
    assert_eq!(path_end(path, 1), "_tensor.py");
    assert_eq!(path_end(path, 2), "torch/_tensor.py");
    assert_eq!(path_end("a.py", 3), "a.py");
}

#[test]
fn symbols_lose_arguments_then_scopes() {
    let name =
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int, float)";
    assert_eq!(shorten_symbol(name, 60), "void at::native::vectorized_elementwise_kernel<…>(…)");
    assert_eq!(shorten_symbol(name, 40), "…::vectorized_elementwise_kernel<…>(…)");
    assert_eq!(width(&shorten_symbol(name, 20)), 20);
    assert_eq!(shorten_symbol("bool ns::operator<(A const&)", 20), "bool ns::…(A const&)");
    assert_eq!(shorten_symbol("<lambda>.<locals>.inner_function", 12).chars().count(), 12);
}

#[test]
fn cuts_respect_wide_characters() {
    for max in 0..12 {
        for text in [
            "模型训练循环",
            "🚀🚀🚀🚀🚀🚀",
            "☺\u{fe0f}☺\u{fe0f}☺\u{fe0f}☺\u{fe0f}",
            "e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}",
        ] {
            for short in [shorten_end(text, max), shorten_middle(text, max), shorten_symbol(text, max)] {
                assert!(width(&short) <= max.max(1), "{short:?} is wider than {max}");
            }
        }
    }
}

#[test]
fn lines_break_between_words() {
    assert_eq!(
        wrap("pin the batch and pass non_blocking=True", 20),
        ["pin the batch and", "pass", "non_blocking=True"]
    );
    assert_eq!(wrap("saves 102 µs, 12.5 %", 12), ["saves", "102 µs,", "12.5 %"]);
    assert_eq!(wrap("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
    assert_eq!(wrap("", 10), [""]);
    assert_eq!(wrap("模型", 1), ["模", "型"]);
}

#[test]
fn times_take_units() {
    for (text, ns) in [
        ("1.5", 1_500_000_000),
        ("1.5s", 1_500_000_000),
        ("0.183008925", 183_008_925),
        ("20ms", 20_000_000),
        ("7.25us", 7_250),
        ("400ns", 400),
        ("400.9ns", 400),
        ("-2.5", -2_500_000_000),
        (".5", 500_000_000),
    ] {
        assert_eq!(parse_time(text), Ok(ns), "{text}");
    }
    for text in ["", "s", "-", "1e3", "1.5.2", "12h", "99999999999999"] {
        assert!(parse_time(text).is_err(), "{text}");
    }
}

#[test]
fn words_survive_the_shell() {
    assert_eq!(shell_quote("a/b-1.sqlite"), "a/b-1.sqlite");
    assert_eq!(shell_quote("my run's.sqlite"), "'my run'\\''s.sqlite'");
}

#[test]
fn packages_and_the_standard_library_are_told_by_their_folders() {
    for (path, of_package, of_python) in [
        ("/venv/lib/python3.12/site-packages/torchvision/ops/boxes.py", Some("torchvision"), true),
        ("/usr/lib/python3/dist-packages/six.py", Some("six"), true),
        ("C:\\Python311\\Lib\\site-packages\\torch\\_tensor.py", Some("torch"), true),
        ("/opt/pytorch/pytorch/torch/nn/modules/module.py", Some("torch"), false),
        ("/home/me/torch/train.py", None, false),
        ("/usr/lib/python3.10/threading.py", None, true),
        ("C:\\Python311\\Lib\\threading.py", None, true),
        ("/srv/python311.zip/json/encoder.py", None, true),
        ("/home/me/python/train.py", None, false),
    ] {
        assert_eq!((package(path), is_of_python(path)), (of_package, of_python), "{path}");
    }
}

#[test]
fn percents_add_up() {
    assert_eq!(percents(&[195, 5, 312, 488]), [20, 0, 31, 49]);
    assert_eq!(percents(&[1, 1, 1]), [34, 33, 33]);
    assert_eq!(percents(&[0, 0]), [0, 0]);
    assert_eq!(percents(&[i64::MAX, i64::MAX, 0]), [50, 50, 0]);
}

#[test]
fn durations_of_a_column_have_one_unit() {
    let shown = |all: &[i64]| -> Vec<String> {
        let scale = Scale::of(all.iter().copied());
        all.iter().map(|&ns| scale.show(ns)).collect()
    };
    assert_eq!(shown(&[2_341_000, 80_000, 2_000, 0]), ["2.34 ms", "0.08 ms", "<0.01 ms", "0 ms"]);
    assert_eq!(shown(&[88_200, 61_250, 940, -1_500]), ["88.2 µs", "61.3 µs", "0.9 µs", "-1.5 µs"]);
    assert_eq!(shown(&[999, 1]), ["999 ns", "1 ns"]);
    assert_eq!(shown(&[75_000_000_000, 100_000_000]), ["75.0 s", "0.1 s"]);
    assert_eq!(shown(&[i64::MAX, i64::MIN])[1], "-9223372036.9 s");
    assert_eq!(shown(&[0]), ["0 ns"]);
}
