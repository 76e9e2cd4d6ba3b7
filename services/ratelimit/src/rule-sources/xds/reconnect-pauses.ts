import { backoffDelays } from '@tollgate/kit/backoff';
import { maxTimerMs } from '@tollgate/kit/time';

/** How long to wait before the server is called again. */
export interface ReconnectPauseOptions {
  /** CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL; each pause is drawn from half of it to one and a half. */
  readonly connectRetryMs: number;
  /** XDS_CLIENT_BACKOFF_INITIAL_INTERVAL. */
  readonly initialMs: number;
  /** XDS_CLIENT_BACKOFF_MAX_INTERVAL. */
  readonly maxMs: number;
  /** How far the growing pauses are spread, 0 to 1: XDS_CLIENT_BACKOFF_RANDOM_FACTOR, or 0 without jitter. */
  readonly spread: number;
}

/** How a stream ended. */
export interface EndedStream {
  /** The connection stood. */
  readonly connected: boolean;
  /** The server has sent something. */
  readonly delivered: boolean;
}

/** Spread of the short pauses: limiters that lost one server together must not all come back at once. */
const connectRetrySpread = 0.5;

/**
 * Makes the function from how a stream ended to the pause before the next. A stream that had worked, and a server that
 * cannot be reached, are tried again after the short interval, for as long as the first growing pause would take: most
 * outages are restarts. What lasts longer, and a server that ends streams without sending anything, gets pauses that double.
 */
export function createReconnectPauses(
  { connectRetryMs, initialMs, maxMs, spread }: ReconnectPauseOptions,
  random: () => number,
): (ended: EndedStream) => number {
  const shortTries = Math.max(1, Math.floor(initialMs / connectRetryMs));
  const short = backoffDelays({
    initialMs: connectRetryMs,
    maxMs: Math.min(maxTimerMs, connectRetryMs * (1 + connectRetrySpread)),
    factor: 1,
    jitter: connectRetrySpread,
    random,
  });
  const growing = backoffDelays({ initialMs, maxMs, jitter: spread, random });
  let shortPauses = 0;
  let growingPauses = 0;

  return ({ connected, delivered }) => {
    if (delivered) {
      shortPauses = 0;
      growingPauses = 0;
    }
    const isBrief = (delivered || !connected) && growingPauses === 0 && shortPauses < shortTries;
    if (isBrief) {
      shortPauses++;
      return short(shortPauses);
    }
    growingPauses++;
    return growing(growingPauses);
  };
}
