/** Who runs PostgreSQL: undefined for whoever runs this process. */
export type ServerAccount = { readonly uid: number; readonly gid: number } | undefined;

/** `nobody` on every Linux and on macOS's counterparts of containers; it exists wherever root starts development servers. */
const nobodyId = 65534;

/** PostgreSQL refuses to run as root, so root runs it as `nobody`; everybody else runs it as themselves. */
export function serverAccount(userId: number | undefined = process.getuid?.()): ServerAccount {
  return userId === 0 ? { uid: nobodyId, gid: nobodyId } : undefined;
}
