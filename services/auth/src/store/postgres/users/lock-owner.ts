/**
 * Part of a statement that takes away several rows of a user: sessions, factors. Its other parts ask for the id that it answers, so that
 * they begin when it has the row of the user. Statements of one user then come one after another; in any order of their own two of them
 * could each hold what the other waits for. Sign-ins and refreshes do not wait: they take away nothing.
 */
export function lockOwner(userId: string): string {
  return `select id from users where id = ${userId} for no key update`;
}
