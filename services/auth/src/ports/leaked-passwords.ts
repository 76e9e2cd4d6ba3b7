/** Passwords that are known from leaks. */
export interface LeakedPasswords {
  /** Is that one of them? Rejects when that cannot be told, and has logged why. */
  includes(password: string): Promise<boolean>;
}
