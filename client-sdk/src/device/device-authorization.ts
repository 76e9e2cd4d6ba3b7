import { longestTimerMs } from '../client/timers.ts';
import { ParseError } from '../errors/parse-error.ts';

/**
 * What the device shows to its user, and polls with. Plain JSON; `deviceCode` is a secret.
 *
 * @see RFC 8628 §3.2 https://www.rfc-editor.org/rfc/rfc8628#section-3.2
 */
export interface DeviceAuthorization {
  readonly deviceCode: string;
  /** What the user types. */
  readonly userCode: string;
  /** Where the user types it. */
  readonly verificationUri: string;
  /** The same with the code inside, to show as a QR code; not every server sends it. */
  readonly verificationUriComplete?: string;
  /** Epoch seconds. */
  readonly expiresAt: number;
  /** Seconds between two polls, at least. */
  readonly intervalSeconds: number;
}

/** Seconds between two polls where the server does not say. @see RFC 8628 §3.2 https://www.rfc-editor.org/rfc/rfc8628#section-3.2 */
const DEFAULT_INTERVAL_SECONDS = 5;

/**
 * Reads the answer of a device authorization endpoint.
 *
 * @param now epoch seconds when it arrived
 * @throws {ParseError} naming the member that is missing
 */
export function readDeviceAuthorization(parsed: unknown, now: number): DeviceAuthorization {
  if (typeof parsed !== 'object' || parsed === null)
    throw new ParseError('the device authorization response is not an object');
  const members = new Map<string, unknown>(Object.entries(parsed));
  // Google's name for it, older than the standard's.
  const uri = members.get('verification_uri') ?? members.get('verification_url');
  const complete = members.get('verification_uri_complete') ?? members.get('verification_url_complete');
  return {
    deviceCode: text(members.get('device_code'), 'device_code'),
    userCode: text(members.get('user_code'), 'user_code'),
    verificationUri: text(uri, 'verification_uri'),
    ...(typeof complete === 'string' && complete !== '' && { verificationUriComplete: complete }),
    expiresAt: now + seconds(members.get('expires_in'), 'expires_in'),
    intervalSeconds: seconds(
      members.get('interval') ?? DEFAULT_INTERVAL_SECONDS,
      'interval',
      longestTimerMs / 1000,
    ),
  };
}

function text(value: unknown, name: string): string {
  if (typeof value === 'string' && value !== '') return value;
  throw new ParseError(`the device authorization response has no \`${name}\``);
}

function seconds(value: unknown, name: string, maximum = Number.MAX_SAFE_INTEGER): number {
  const number = typeof value === 'string' ? Number(value) : value;
  if (typeof number === 'number' && number >= 0 && number <= maximum) return number;
  throw new ParseError(`the device authorization response has no usable \`${name}\``);
}
