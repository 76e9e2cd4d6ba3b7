import { Secret, TOTP } from 'otpauth';
import qrcode from 'qrcode';
import { errors } from '../errors.ts';
import type { FactorType } from './factor-type.ts';

/** The defaults of authenticator apps. @see RFC 6238 https://www.rfc-editor.org/rfc/rfc6238 */
const parameters = { algorithm: 'SHA1', digits: 6, period: 30 } as const;
/** Codes of the previous and the next period are accepted too. */
const window = 1;

/** The length of the hash, as RFC 4226 §4 recommends. */
const secretBytes = 20;

/** Limit of a QR code, which contains name and issuer percent-encoded: three characters a byte. */
const maxUriChars = 2_500;

/** Codes of authenticator apps. */
export const totp: FactorType = {
  method: 'totp',
  invalidMessage: 'Invalid TOTP code entered',

  async enroll({ settings }, { user, body }) {
    const secret = new Secret({ size: secretBytes }).base32;
    const account = user.email || user.phone || user.id;
    // Shown by the app above the code.
    const issuer = body.issuer || new URL(settings.siteUrl).host;
    const uri = toTotpUri({ secret, issuer, account });
    if (uri.length > maxUriChars) throw errors.validation_failed({ message: 'issuer is too long' });
    return { columns: { secret }, members: { totp: { qr_code: await toQrCodeSvg(uri), secret, uri } } };
  },

  async verify(_context, { challenge, body }, { nowMs }) {
    const totpPeriod = findTotpPeriod(body.code ?? '', challenge.secret, nowMs);
    return totpPeriod !== undefined && totpPeriod > challenge.lastTotpPeriod ? { totpPeriod } : undefined;
  },

  isUsed: (challenge, body, nowMs) => findTotpPeriod(body.code ?? '', challenge.secret, nowMs) !== undefined,
};

/** @see https://github.com/google/google-authenticator/wiki/Key-Uri-Format */
function toTotpUri(options: {
  /** The secret in base32. */
  readonly secret: string;
  readonly issuer: string;
  /** Email or phone of the user. */
  readonly account: string;
}): string {
  const { secret, issuer, account } = options;
  return new TOTP({ ...parameters, issuer, label: account, secret: Secret.fromBase32(secret) }).toString();
}

/**
 * Number of the period that a code belongs to, or undefined for a wrong or expired code. Takes
 * constant time for wrong codes. The caller rejects codes of the last accepted period and earlier.
 *
 * @see RFC 6238 §5.2 https://www.rfc-editor.org/rfc/rfc6238#section-5.2
 */
function findTotpPeriod(code: string, secret: string, nowMs: number): number | undefined {
  const token = { ...parameters, token: code, secret: Secret.fromBase32(secret) };
  const delta = TOTP.validate({ ...token, timestamp: nowMs, window });
  return delta === null ? undefined : TOTP.counter({ ...parameters, timestamp: nowMs }) + delta;
}

/** The SVG has no `#`, as clients put it into a data URL unescaped. */
async function toQrCodeSvg(text: string): Promise<string> {
  const svg = await qrcode.toString(text, { type: 'svg', errorCorrectionLevel: 'L' });
  return svg.replaceAll('#ffffff', 'white').replaceAll('#000000', 'black').trim();
}
