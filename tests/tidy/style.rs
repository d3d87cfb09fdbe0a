//! Sizes, unsafe code, and marks of unfinished work.

use super::source::Source;

/// The longest function, in lines from its `fn` to its last brace.
const MAX_FUNCTION: usize = 70;
/// The longest source file, in lines.
const MAX_FILE: usize = 600;
/// The files that may hold unsafe code.
const UNSAFE_FILES: [&str; 2] = ["src/io/sys.rs", "src/lab/sys.rs"];
const MARKS: [&str; 3] = ["TODO", "FIXME", "XXX"];
const UNFINISHED: [&str; 2] = ["todo", "unimplemented"];

/// Functions (outside tests) and files that are too long.
pub fn size_problems(file: &Source) -> Vec<String> {
    let long = file.functions().into_iter().filter(|f| f.lines > MAX_FUNCTION);
    let mut found: Vec<_> = long
        .filter(|f| !file.is_test(f.line))
        .map(|f| {
            let text = format!("fn {} has {} lines, more than {MAX_FUNCTION}", f.name, f.lines);
            file.problem(f.line, &text)
        })
        .collect();
    let lines = file.text.lines().count();
    if lines > MAX_FILE {
        found.push(file.problem(lines, &format!("{lines} lines, more than {MAX_FILE}: split it")));
    }
    found
}

/// Unsafe code outside the files that hold system calls.
pub fn unsafe_problems(file: &Source) -> Vec<String> {
    if UNSAFE_FILES.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let text = format!("`unsafe` belongs in {} only", UNSAFE_FILES.join(" and "));
    file.find(&["unsafe"]).into_iter().map(|line| file.problem(line, &text)).collect()
}

/// Notes to do something later, and code that is not there yet.
pub fn unfinished_problems(file: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let words = line.split(|c: char| c != '_' && !c.is_alphanumeric());
        let marks = words.filter(|word| MARKS.contains(word));
        found.extend(marks.map(|mark| file.problem(number, &format!("{mark}: finish it"))));
    }
    for name in UNFINISHED {
        let lines = file.find(&[name, "!"]).into_iter();
        found.extend(lines.map(|line| file.problem(line, &format!("{name}!: finish it"))));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(lines: usize) -> String {
        format!("fn f() {{\n{}}}\n", "x;\n".repeat(lines - 2))
    }

    #[test]
    fn long_functions_are_found_outside_tests() {
        let check = |text: &str| size_problems(&Source::new("src/a.rs", text));
        assert_eq!(check(&function(70)), [""; 0]);
        assert_eq!(check(&function(71)), ["src/a.rs:1: fn f has 71 lines, more than 70"]);
        assert_eq!(check(&format!("#[cfg(test)]\nmod t {{\n{}}}", function(71))), [""; 0]);
    }

    #[test]
    fn long_files_are_found() {
        let check = |lines| size_problems(&Source::new("src/nic/tests.rs", &"//\n".repeat(lines)));
        assert_eq!(check(600), [""; 0]);
        assert_eq!(check(601).len(), 1);
    }

    #[test]
    fn unsafe_is_found_outside_its_files() {
        let text = "// unsafe\n#![allow(unsafe_code)]\nfn f() { unsafe { g() } }\n\"unsafe\"";
        let check = |path| unsafe_problems(&Source::new(path, text));
        assert_eq!(
            check("src/io/mod.rs"),
            ["src/io/mod.rs:3: `unsafe` belongs in src/io/sys.rs and src/lab/sys.rs only"]
        );
        assert_eq!(check("src/io/sys.rs"), [""; 0]);
    }

    #[test]
    fn unfinished_work_is_found() {
        let text = "// TODO: x\nfn f() { todo!() }\n\"mkXXXX\"\n/* FIXME */ unimplemented!();\n";
        let found = unfinished_problems(&Source::new("src/a.rs", text));
        assert_eq!(
            found,
            [
                "src/a.rs:1: TODO: finish it",
                "src/a.rs:4: FIXME: finish it",
                "src/a.rs:2: todo!: finish it",
                "src/a.rs:4: unimplemented!: finish it",
            ]
        );
    }
}
