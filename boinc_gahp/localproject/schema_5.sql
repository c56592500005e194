-- For lookup_account.php. email_addr is in lower case, '' if there is none; passwd_hash is salt and
-- digest of what clients make of a password.
ALTER TABLE user ADD COLUMN email_addr TEXT NOT NULL DEFAULT '';
ALTER TABLE user ADD COLUMN passwd_hash TEXT NOT NULL DEFAULT '';
