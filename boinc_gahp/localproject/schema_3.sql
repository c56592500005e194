-- The page's sessions, which end here when somebody signs out: the cookie alone is worth nothing.
-- A session of an authenticator that its user no longer has is none. expires: seconds since 1970.
CREATE TABLE session (
    id TEXT PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES user (id) ON DELETE CASCADE,
    authenticator TEXT NOT NULL,
    expires REAL NOT NULL
) WITHOUT ROWID;
