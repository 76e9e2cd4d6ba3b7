import { join } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { type Certificate, type Certificates, makeCertificates } from '@tollgate/testkit/certificates';
import { makeTextFolder } from '@tollgate/testkit/folders';
import type { Test } from 'tap';
import type { Edge } from './edge.ts';
import { tlsTransportSocket } from './envoy-config.ts';
import { isWelcome, type Load } from './requests.ts';

interface TlsPair {
  readonly own: Certificate;
  /** The trusted authorities of the other side. */
  readonly authorities: readonly Certificate[];
}

/**
 * Files of one side, replaced all at once, as Kubernetes replaces those of a Secret: they are links
 * through a folder that is a link itself.
 */
export interface RotatingCertificates {
  /** The folder of the files, and the link that is swapped. */
  readonly folder: string;
  readonly certFile: string;
  readonly keyFile: string;
  readonly caFile: string;
  replace(pair: TlsPair): void;
}

/** Writes the files. They are removed when the test ends. */
function makeRotatingCertificates(t: Test, first: TlsPair): RotatingCertificates {
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

/** Two authorities, and the files of both sides: those of the first until they are replaced. */
export interface MutualTls {
  readonly old: Certificates;
  readonly next: Certificates;
  readonly serverFiles: RotatingCertificates;
  readonly clientFiles: RotatingCertificates;
  /** For Envoy's side. */
  readonly transportSocket: object;
}

/** The name that the certificates of clients carry. */
export const clientName = 'client.test';

export function makeMutualTls(t: Test): MutualTls {
  const authority = () => {
    const certificates = makeCertificates();
    t.teardown(certificates.remove);
    return certificates;
  };
  const [old, next] = [authority(), authority()];
  const serverFiles = makeRotatingCertificates(t, { own: old.server, authorities: [old.ca] });
  const clientFiles = makeRotatingCertificates(t, { own: old.client, authorities: [old.ca] });
  return { old, next, serverFiles, clientFiles, transportSocket: tlsTransportSocket(t, clientFiles) };
}

export interface Replacement {
  readonly port: number;
  readonly cluster: string;
  readonly edge: Edge;
  readonly load: Load;
}

/**
 * Requests answered between two steps. Connections live for fewer, so that many begin with what the
 * step left.
 */
const someRequests = 150;

/** Files are reloaded within a fraction of a second on an idle machine. */
const patience = { everyMs: 50 };

/**
 * Replaces the certificates of both sides and their authority in three steps, so that no connection
 * is rejected.
 */
export async function replaceCertificates(t: Test, tls: MutualTls, where: Replacement): Promise<void> {
  const { old, next, serverFiles, clientFiles } = tls;
  const { port, load } = where;
  /**
   * Waits until the server shows a certificate of this authority, and takes (or refuses) clients of
   * that one.
   */
  const serverHas = (shown: Certificates, clients: Certificates, taken = true) =>
    awaitUntil(async () => (await isWelcome(port, clients.client, shown.ca)) === taken, {
      what: `the server to read its files`,
      ...patience,
    });

  await load.goOn(someRequests);
  await t.test('both sides learn to trust the next authority', async (t) => {
    serverFiles.replace({ own: old.server, authorities: [old.ca, next.ca] });
    await serverHas(old, next);
    await envoyReads(where, () => clientFiles.replace({ own: old.client, authorities: [old.ca, next.ca] }));
    await assertNoFailures(t, load);
  });
  await t.test('both show certificates of the next authority', async (t) => {
    serverFiles.replace({ own: next.server, authorities: [old.ca, next.ca] });
    await serverHas(next, next);
    await envoyReads(where, () => clientFiles.replace({ own: next.client, authorities: [old.ca, next.ca] }));
    await assertNoFailures(t, load);
  });
  await t.test('both forget the old authority', async (t) => {
    serverFiles.replace({ own: next.server, authorities: [next.ca] });
    await serverHas(next, old, false);
    await envoyReads(where, () => clientFiles.replace({ own: next.client, authorities: [next.ca] }));
    await assertNoFailures(t, load);
  });
}

/** Replaces files of Envoy's and waits until it has read one that differs from before. */
async function envoyReads({ edge, cluster }: Replacement, replace: () => void): Promise<void> {
  const updates = async () => {
    const name = `cluster.${cluster}.client_ssl_socket_factory.ssl_context_update_by_sds`;
    return (await edge.stats(`^${name}$`))[name] ?? 0;
  };
  const before = await updates();
  replace();
  await awaitUntil(async () => (await updates()) > before, { what: 'Envoy to read its files', ...patience });
}

async function assertNoFailures(t: Test, load: Load): Promise<void> {
  await load.goOn(someRequests);
  t.same(Object.keys(load.answers()), ['200']);
}
