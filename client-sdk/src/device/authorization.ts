import { ParseError } from '../errors.ts';
import { longestTimerMs } from '../timers.ts';

/**
 * What the device shows to its user and polls with. Plain JSON; `deviceCode` is a secret.
 * @see RFC 8628 §3.2 https://www.rfc-editor.org/rfc/rfc8628#section-3.2
 */
export interface DeviceAuthorization {
  readonly deviceCode: string;
  /** The code that the user enters. */
  readonly userCode: string;
  /** Where the user enters the code. */
  readonly verificationUri: string;
  /** The same with the code, to show as a QR code; not every server sends it. */
  readonly verificationUriComplete?: string;
  /** Epoch seconds. */
  readonly expiresAt: number;
  /** Minimum of seconds between two polls. */
  readonly intervalSeconds: number;
}

/**
 * The interval if the server sends none.
 * @see RFC 8628 §3.2 https://www.rfc-editor.org/rfc/rfc8628#section-3.2
 */
const DEFAULT_INTERVAL_SECONDS = 5;

/**
 * Reads the response of a device authorization endpoint.
 *
 * @param now epoch seconds of its arrival
 * @throws {ParseError} naming the missing member
 */
export function readDeviceAuthorization(parsed: unknown, now: number): DeviceAuthorization {
  if (typeof parsed !== 'object' || parsed === null)
    throw new ParseError('the device authorization response is not an object');
  const members = new Map<string, unknown>(Object.entries(parsed));
  // Google's name, older than the standard's.
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
