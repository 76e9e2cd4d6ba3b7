import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from './folders.ts';
import { findBinary } from './processes.ts';

/** A certificate with its key: PEM texts and their files. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
  readonly certFile: string;
  readonly keyFile: string;
}

/** Content of a certificate. */
interface CertificateRequest {
  /**
   * Base name of the files, and the common name unless that is given. Issuing a name again replaces
   * its files.
   */
  name: string;
  commonName?: string;
  /** Names in openssl's syntax: `DNS:localhost`, `IP:127.0.0.1`, `URI:spiffe://demo/envoy`. */
  subjectAltNames?: readonly string[];
  /** Days until it expires; 0 for an expired one. Default 2. */
  validDays?: number;
}

/** A certificate authority of one test, with the pairs that most tests need. */
export interface Certificates {
  readonly folder: string;
  /** The authority's own certificate. */
  readonly ca: Certificate;
  /** Certificate for localhost and 127.0.0.1. */
  readonly server: Certificate;
  /** Certificate for the DNS name `client.test` and the URI `spiffe://test/client`. */
  readonly client: Certificate;
  /** Another certificate of the same authority. */
  issue(request: CertificateRequest): Certificate;
  /** Removes all files. Idempotent; done at process exit anyway. */
  remove(): void;
}

/**
 * Creates a certificate authority with a server and a client pair (EC P-256) in a temporary folder.
 * Takes about 50 ms.
 *
 * @throws Error when openssl is not installed.
 */
export function makeCertificates(): Certificates {
  const openssl = findBinary('openssl');
  const temporary = temporaryFolder();
  const folder = temporary.path;
  const run = (...args: string[]) => execFileSync(openssl, args, { cwd: folder, stdio: 'pipe' });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

  function read(name: string): Certificate {
    const certFile = join(folder, `${name}.crt`);
    const keyFile = join(folder, `${name}.key`);
    return { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8'), certFile, keyFile };
  }

  function issue({ name, commonName = name, subjectAltNames = [], validDays = 2 }: CertificateRequest) {
    const extensions = subjectAltNames.length === 0 ? '' : `subjectAltName=${subjectAltNames.join(',')}\n`;
    writeFileSync(join(folder, `${name}.ext`), `basicConstraints=CA:FALSE\n${extensions}`);
    run('req', ...newKey, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${commonName}`);
    run(
      ...['x509', '-req', '-in', `${name}.csr`, '-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial'],
      ...['-days', String(validDays), '-extfile', `${name}.ext`, '-out', `${name}.crt`],
    );
    return read(name);
  }

  const caExtensions = [
    '-addext',
    'basicConstraints=critical,CA:TRUE',
    '-addext',
    'keyUsage=keyCertSign,cRLSign',
  ];
  run(
    'req',
    '-x509',
    ...newKey,
    '-keyout',
    'ca.key',
    '-out',
    'ca.crt',
    '-days',
    '2',
    '-subj',
    '/CN=Test CA',
    ...caExtensions,
  );
  return {
    folder,
    ca: read('ca'),
    server: issue({
      name: 'server',
      commonName: 'localhost',
      subjectAltNames: ['DNS:localhost', 'IP:127.0.0.1'],
    }),
    client: issue({ name: 'client', subjectAltNames: ['DNS:client.test', 'URI:spiffe://test/client'] }),
    issue,
    remove: temporary.remove,
  };
}
