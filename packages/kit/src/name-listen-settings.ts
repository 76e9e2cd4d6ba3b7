/** Which settings say where a server listens. */
export interface ListenSettings {
  readonly host: string;
  readonly port: string;
}

/**
 * Has a server listen; when it cannot, because another process has the port above all, the settings to look at are named.
 *
 * @throws Error with that of the server as its cause.
 */
export async function nameListenSettings<Started>(
  listening: Promise<Started>,
  { host, port }: ListenSettings,
): Promise<Started> {
  try {
    return await listening;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`cannot listen where ${host} and ${port} say: ${reason}`, { cause });
  }
}
