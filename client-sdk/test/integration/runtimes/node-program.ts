/**
 * Steps that the subpaths for Node must pass, in Node and in runtimes that have its modules.
 *
 * @module
 */
import type * as main from '../../../src/index.ts';
import type * as kubernetes from '../../../src/kubernetes.ts';
import type * as node from '../../../src/node.ts';
import type * as testing from '../../../src/testing.ts';
import type * as tokenManager from '../../../src/token-manager.ts';

/** The modules of the package that the program uses, by the ends of their specifiers. */
export interface NodeSdk {
  readonly '.': typeof main;
  readonly './kubernetes': typeof kubernetes;
  readonly './node': typeof node;
  readonly './testing': typeof testing;
  readonly './token-manager': typeof tokenManager;
}

/** The program's input. */
export interface NodeProgramInput {
  /** An https server that asks for a client certificate, and answers with the name in it. */
  readonly mutualTls: {
    readonly url: string;
    readonly ca: string;
    readonly cert: string;
    readonly key: string;
  };
  /** An empty folder of its own. */
  readonly folder: string;
  /** A file with a service-account token. */
  readonly tokenFile: string;
}

/** The steps by name. */
export const nodeSteps = {
  async 'a client certificate proves who asks'(sdk: NodeSdk, { mutualTls }: NodeProgramInput) {
    const { url: site, ...tls } = mutualTls;
    const transport = sdk['./node'].nodeTransport(tls);
    const client = new sdk['.'].Client({ clientId: 'client', site, fetch: transport });
    const { body } = await client.request('GET', '/');
    transport.close();
    return body;
  },

  async 'a token in files outlives its manager'(sdk: NodeSdk, { folder }: NodeProgramInput) {
    const server = await sdk['./testing'].startAuthorizationServer();
    const site = server.issuer;
    const client = new sdk['.'].Client({ clientId: 'client', clientSecret: 'secret', site });
    const statuses: number[] = [];
    for (let run = 0; run < 2; run += 1) {
      const manager = new sdk['./token-manager'].TokenManager({
        client,
        store: sdk['./node'].fileTokenStore({ folder }),
        acquire: () => client.clientCredentials.getToken(),
      });
      statuses.push((await manager.fetch(`${site}/resource/a`)).status);
      await manager[Symbol.asyncDispose]();
    }
    const tokenRequests = server.count('token');
    await server.close();
    return { statuses, tokenRequests };
  },

  async 'the service-account token is read from its file'(sdk: NodeSdk, { tokenFile }: NodeProgramInput) {
    const path = tokenFile;
    return await sdk['./kubernetes'].readServiceAccountToken({ path });
  },
};
