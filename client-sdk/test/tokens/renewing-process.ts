import { Client } from '../../src/index.ts';
import { fileTokenStore } from '../../src/node.ts';
import { TokenManager } from '../../src/token-manager.ts';

/**
 * A process of the test beside it: renews the shared token again and again, and calls the API with
 * each.
 */
const [issuer = '', folder = '', rounds = '0', leaseSeconds = '30'] = process.argv.slice(2);
const client = new Client({ site: issuer, clientId: 'client', clientSecret: 'secret' });
await using manager = new TokenManager({
  ...{ client, store: fileTokenStore({ folder }), key: 'shared' },
  leaseSeconds: Number(leaseSeconds),
});
for (let round = 0; round < Number(rounds); round += 1) {
  await manager.renew();
  const response = await manager.fetch('/resource/a');
  if (response.status !== 200) throw new Error(`round ${round}: status ${response.status}`);
  await response.body?.cancel();
}
