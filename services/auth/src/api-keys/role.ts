/**
 * The role of a key, which is never above that of the user who owns it.
 *
 * @param owner undefined for keys of machines and organisations
 * @param order roles from the lowest to the highest
 */
export function keyRoleOf(
  role: string | undefined,
  owner: string | undefined,
  order: readonly string[],
): string {
  if (owner === undefined || role === undefined) return role ?? owner ?? '';
  return isAtMost(role, owner, order) ? role : owner;
}

/** Whether a role is that of the owner, or a lower one. Roles outside of the order are unequal. */
export function isAtMost(role: string, owner: string, order: readonly string[]): boolean {
  const rank = order.indexOf(role);
  return role === owner || (rank !== -1 && rank < order.indexOf(owner));
}
