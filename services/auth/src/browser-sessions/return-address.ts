import type { Settings } from '../config/settings.ts';
import { isEqualSecret } from '../keys/secrets.ts';
import { sign } from './key.ts';

/** Where a browser goes after the sign-in. */
export interface ReturnAddress {
  /** A URL of an application that sends browsers without a session to the sign-in page. */
  readonly url: string;
  /** Digest of the secret of the browser that asked for it. */
  readonly binding: string;
  /** The level that the URL requires, if the session of the browser had a lower one. */
  readonly assurance?: 'aal2' | undefined;
}

interface OpenedAddress extends ReturnAddress {
  /** The browser asks for the URL again, without a code. */
  readonly isExpired: boolean;
}

/** The time for a sign-in. */
export const signInLifeMs = 15 * 60_000;

type SealSettings = Pick<Settings, 'jwtSecret'>;

/** A text that has the address, and that only this server can have written. */
export function sealReturnAddress(
  { url, binding, assurance }: ReturnAddress,
  { settings, nowMs }: { readonly settings: SealSettings; readonly nowMs: number },
): string {
  const payload = Buffer.from(JSON.stringify([url, binding, nowMs + signInLifeMs, assurance])).toString(
    'base64url',
  );
  return `${payload}.${sign('return address', payload, settings)}`;
}

/** Undefined for a text that this server has not written. */
export function openReturnAddress(
  sealed: string,
  { settings, nowMs }: { readonly settings: SealSettings; readonly nowMs: number },
): OpenedAddress | undefined {
  const [payload = '', signature = '', ...others] = sealed.split('.');
  if (others.length > 0 || !isEqualSecret(signature, sign('return address', payload, settings)))
    return undefined;
  // The signature says that it has this form.
  const [url, binding, expiresAtMs, assurance] = JSON.parse(Buffer.from(payload, 'base64url').toString()) as [
    string,
    string,
    number,
    'aal2' | null,
  ];
  return { url, binding, assurance: assurance ?? undefined, isExpired: expiresAtMs <= nowMs };
}
