import { join } from 'node:path';
import type { Certificate } from '@tollgate/testkit/certificates';
import { makeTextFolder } from '@tollgate/testkit/folders';
import type { Test } from 'tap';

/** What one side of TLS needs. */
export interface TlsPair {
  readonly own: Certificate;
  /** The authorities that the other side's certificate may come from. */
  readonly authorities: readonly Certificate[];
}

/**
 * Files of one side, replaced all at once, as Kubernetes replaces those of a Secret: they are links through a folder
 * that is a link itself.
 */
export interface RotatingCertificates {
  /** Where the files lie, and the link that is swapped. */
  readonly folder: string;
  readonly certFile: string;
  readonly keyFile: string;
  readonly caFile: string;
  replace(pair: TlsPair): void;
}

/** Writes the files. They are removed when the test ends. */
export function makeRotatingCertificates(t: Test, first: TlsPair): RotatingCertificates {
  const folder = makeTextFolder(t);
  let version = 0;
  function replace({ own, authorities }: TlsPair): void {
    version += 1;
    folder.write(`v${version}/tls.crt`, own.cert);
    folder.write(`v${version}/tls.key`, own.key);
    folder.write(`v${version}/ca.crt`, authorities.map(({ cert }) => cert).join(''));
    folder.swapLink('..data', `v${version}`);
  }
  replace(first);
  const file = (name: string): string => {
    folder.swapLink(name, `..data/${name}`);
    return join(folder.path, name);
  };
  return {
    folder: folder.path,
    certFile: file('tls.crt'),
    keyFile: file('tls.key'),
    caFile: file('ca.crt'),
    replace,
  };
}
