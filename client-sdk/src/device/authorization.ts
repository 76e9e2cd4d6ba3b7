import { ParseError } from '../errors.ts';
import { isSecure } from '../http/url.ts';
import { printable } from '../text.ts';
import { longestTimerMs } from '../timers.ts';

/**
 * The response of the device authorization endpoint: the codes that the device shows to its user
 * and polls with. Plain JSON; `deviceCode` is a secret.
 * @see RFC 8628 §3.2 https://www.rfc-editor.org/rfc/rfc8628#section-3.2
 */
export interface DeviceAuthorization {
  readonly deviceCode: string;
  /** The code that the user enters, with control characters escaped. */
  readonly userCode: string;
  /** Where the user enters the code: https, or http to this machine. */
  readonly verificationUri: string;
  /** The URI with the user code in it, to show as a QR code. Not every server sends it. */
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

/** Shorter intervals of a server would make the device flood it. */
export const MINIMUM_INTERVAL_SECONDS = 1;

/** Longer texts fit on no screen, and into no QR code. */
const MAX_SHOWN_LENGTH = 4096;

/**
 * Reads the response of a device authorization endpoint.
 *
 * @throws {ParseError} naming the missing or invalid member
 */
export function readDeviceAuthorization(
  parsed: unknown,
  {
    now,
    allowInsecure = false,
  }: {
    /** Epoch seconds of its arrival. */
    readonly now: number;
    /** Whether verification URIs may be http to any host. */
    readonly allowInsecure?: boolean;
  },
): DeviceAuthorization {
  if (typeof parsed !== 'object' || parsed === null)
    throw new ParseError('the device authorization response is not an object');
  const members = new Map<string, unknown>(Object.entries(parsed));
  // Google's name, older than the standard's.
  const uri = members.get('verification_uri') ?? members.get('verification_url');
  const complete = members.get('verification_uri_complete') ?? members.get('verification_url_complete');
  return {
    deviceCode: text(members.get('device_code'), 'device_code'),
    // Terminals execute control characters.
    userCode: printable(text(members.get('user_code'), 'user_code'), MAX_SHOWN_LENGTH),
    verificationUri: webUri(text(uri, 'verification_uri'), 'verification_uri', allowInsecure),
    ...(typeof complete === 'string' &&
      complete !== '' && {
        verificationUriComplete: webUri(complete, 'verification_uri_complete', allowInsecure),
      }),
    expiresAt: now + seconds(members.get('expires_in'), 'expires_in'),
    intervalSeconds: Math.max(
      MINIMUM_INTERVAL_SECONDS,
      seconds(members.get('interval') ?? DEFAULT_INTERVAL_SECONDS, 'interval', longestTimerMs / 1000),
    ),
  };
}

/** Devices open these, and users trust them: another scheme could start a program. */
function webUri(uri: string, name: string, allowInsecure: boolean): string {
  const url = URL.parse(uri);
  if (url !== null && /^https?:$/.test(url.protocol) && isSecure(url.href, allowInsecure))
    return printable(uri, MAX_SHOWN_LENGTH);
  throw new ParseError(
    `\`${name}\` of the device authorization response must be an https URL, or http to this machine`,
  );
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
