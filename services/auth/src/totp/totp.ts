import { Secret, TOTP } from 'otpauth';
import qrcode from 'qrcode';

/** What every authenticator app knows; a code of the previous and the next period is good too. @see RFC 6238 https://www.rfc-editor.org/rfc/rfc6238 */
const parameters = { algorithm: 'SHA1', digits: 6, period: 30 } as const;
const window = 1;

/** The URI that an authenticator app reads. @see https://github.com/google/google-authenticator/wiki/Key-Uri-Format */
export function totpUri(options: {
  /** In base32. */
  readonly secret: string;
  readonly issuer: string;
  /** Email or phone of the user. */
  readonly account: string;
}): string {
  const { secret, issuer, account } = options;
  return new TOTP({ ...parameters, issuer, label: account, secret: Secret.fromBase32(secret) }).toString();
}

/** Is that the code of the moment? Takes the same time for every wrong one. */
export function isTotpCode(code: string, secret: string, nowMs: number): boolean {
  const token = { ...parameters, token: code, secret: Secret.fromBase32(secret) };
  return TOTP.validate({ ...token, timestamp: nowMs, window }) !== null;
}

/** A text as a QR code in SVG, fit for a data URL that nobody escapes: there is no `#` in it. */
export async function qrCodeSvg(text: string): Promise<string> {
  const svg = await qrcode.toString(text, { type: 'svg', errorCorrectionLevel: 'L' });
  return svg.replaceAll('#ffffff', 'white').replaceAll('#000000', 'black').trim();
}
