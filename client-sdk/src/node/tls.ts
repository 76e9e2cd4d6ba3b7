import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { ConfigurationError } from '../errors.ts';
import type { NodeTransportOptions, Pem } from './transport.ts';

const certificateFile = /\.(pem|crt|cer)$/i;

/** The TLS options of all connections. */
export interface TlsSettings extends SecureContextOptions {
  readonly rejectUnauthorized: boolean;
}

/**
 * Reads files and keys, and checks that they fit together, so that a wrong password fails at the
 * start.
 *
 * @throws ConfigurationError naming the option, with the reason as its cause.
 */
export function loadTlsSettings(options: NodeTransportOptions): TlsSettings {
  const { cert, key, passphrase, pfx, verify = true } = options;
  if ((cert === undefined) !== (key === undefined)) {
    throw new ConfigurationError('mutual TLS needs both cert and key (or pfx)');
  }
  const ca = loadAuthorities(options);
  const settings: TlsSettings = {
    rejectUnauthorized: verify,
    ...(cert !== undefined && { cert: toPem(cert) }),
    ...(key !== undefined && { key: toPem(key) }),
    ...(pfx !== undefined && { pfx: Buffer.from(pfx) }),
    ...(passphrase !== undefined && { passphrase }),
    ...(ca.length > 0 && { ca }),
  };
  attempt('cert, key, pfx, passphrase or ca cannot be used', () => createSecureContext(settings));
  return settings;
}

/** Proxies do not get it: the client's certificate is for the target only. */
export function withoutClientCertificate({ ca, rejectUnauthorized }: TlsSettings): TlsSettings {
  return { rejectUnauthorized, ...(ca !== undefined && { ca }) };
}

function loadAuthorities({ ca = [], caFile, caPath }: NodeTransportOptions): (string | Buffer)[] {
  const authorities = (typeof ca === 'string' || ca instanceof Uint8Array ? [ca] : [...ca]).map(toPem);
  if (caFile !== undefined) {
    authorities.push(attempt(`caFile ${caFile} cannot be read`, () => readFileSync(caFile)));
  }
  if (caPath !== undefined) {
    attempt(`caPath ${caPath} cannot be read`, () => {
      const names = readdirSync(caPath).filter((name) => certificateFile.test(name));
      if (names.length === 0) throw new Error('no .pem, .crt or .cer file in it');
      for (const name of names.sort()) authorities.push(readFileSync(join(caPath, name)));
    });
  }
  return authorities;
}

function toPem(pem: Pem): string | Buffer {
  return typeof pem === 'string' ? pem : Buffer.from(pem);
}

function attempt<T>(problem: string, action: () => T): T {
  try {
    return action();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ConfigurationError(`${problem}: ${reason}`, { cause });
  }
}
