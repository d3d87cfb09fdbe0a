//! The user that a daemon goes on as.

use std::fs;
use std::path::Path;

/// A user by number, with a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct User {
    /// The user's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
}

/// Where names are looked up; there may be none, as in an empty container.
const PASSWD: &str = "/etc/passwd";

/// The user that `text` says: `NAME`, `UID` or `UID:GID`. Without a group it is
/// the user's own.
// spec: REL-9
pub fn user(text: &str) -> Result<User, String> {
    find(text, &fs::read_to_string(Path::new(PASSWD)).unwrap_or_default())
}

fn find(text: &str, passwd: &str) -> Result<User, String> {
    if let Some((uid, gid)) = text.split_once(':') {
        let number = |text: &str, what| {
            text.parse()
                .map_err(|_| format!("`{text}` is no {what}: UID:GID are two whole numbers"))
        };
        return Ok(User { uid: number(uid, "user number")?, gid: number(gid, "group number")? });
    }
    // name:password:uid:gid:...
    let entries = passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let [uid, gid] = [fields.nth(1)?, fields.next()?].map(|field| field.parse().ok());
        Some((name, User { uid: uid?, gid: gid? }))
    });
    let number: Option<u32> = text.parse().ok();
    let found = entries.into_iter().find(|(name, user)| *name == text || Some(user.uid) == number);
    found.map(|(_, user)| user).ok_or_else(|| match number {
        Some(uid) => {
            format!("{PASSWD} has no user {uid}, so its group is not known; give {uid}:GID")
        }
        None => format!("{PASSWD} has no user of this name; give a name from there, or UID:GID"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "root:x:0:0:root:/root:/bin/sh\n\nnobody:x:65534:65533::/:/bin/false\n";

    // spec: REL-9
    #[test]
    fn users_go_by_name_or_number() {
        let nobody = User { uid: 65_534, gid: 65_533 };
        assert_eq!(find("nobody", TABLE), Ok(nobody));
        assert_eq!(find("65534", TABLE), Ok(nobody));
        assert_eq!(find("7:8", ""), Ok(User { uid: 7, gid: 8 }));
    }

    #[test]
    fn users_that_are_not_there_are_told_what_to_give() {
        for (text, part) in [
            ("lab", "no user of this name"),
            ("", "no user of this name"),
            ("7", "give 7:GID"),
            ("7:", "`` is no group number"),
            ("lab:7", "`lab` is no user number"),
            ("4294967296:7", "is no user number"),
        ] {
            let error = find(text, TABLE).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
