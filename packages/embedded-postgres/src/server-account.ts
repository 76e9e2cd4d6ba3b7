/** The account of PostgreSQL; undefined for that of this process. */
export type ServerAccount = { readonly uid: number; readonly gid: number } | undefined;

/** `nobody` on Linux. */
const nobodyId = 65534;

/**
 * PostgreSQL refuses to run as root, so root runs it as `nobody`; other users run it as themselves.
 */
export function serverAccount(userId: number | undefined = process.getuid?.()): ServerAccount {
  return userId === 0 ? { uid: nobodyId, gid: nobodyId } : undefined;
}
