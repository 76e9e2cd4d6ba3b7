/** Hashes and verifies passwords. Both wait in one bounded queue; when it is full they reject with `hash_queue_full`. */
export interface PasswordHasher {
  /** A new hash, in the form that `isCurrent` accepts. */
  hash(password: string): Promise<string>;
  /** Does the password belong to the hash, as it is kept for a user? A hash in a form that nobody knows belongs to none. */
  verify(password: string, hash: string, userId: string): Promise<boolean>;
  /** The same work as `verify`, for a user who does not exist: whoever measures must not learn that. */
  verifyNobody(password: string): Promise<false>;
  /** Can a hash that comes from another server be verified, at a cost that can be borne? */
  isImportable(hash: string): boolean;
  /** Was the hash made as `hash` makes them now, and is it kept as it would be now? If not, it is to be replaced when the password is known. */
  isCurrent(hash: string, userId: string): boolean;
}
