import type { Logger } from '@tollgate/kit/logger';

/** Tells when a server goes away and when it is back, however often it is tried in between. */
export interface OutageLog {
  /** An attempt to reach the server failed. */
  failed(error: NodeJS.ErrnoException): void;
  /** The server was reached. */
  reached(): void;
}

/** Makes the log of a statsd server's outages: two warnings for each, so that who sees the one sees the other. */
export function createOutageLog(
  { host, port }: { readonly host: string; readonly port: number },
  logger: Logger,
): OutageLog {
  let away = false;
  return {
    failed({ message, code }) {
      if (away) return;
      away = true;
      // Where all addresses of a name were tried in vain, only the code says why.
      const reason = message === '' ? code : message;
      logger.warn({ host, port, reason }, 'statsd server cannot be reached');
    },
    reached() {
      if (!away) return;
      away = false;
      logger.warn({ host, port }, 'statsd server is back');
    },
  };
}
