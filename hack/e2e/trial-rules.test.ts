import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { fetchText, startXdsServer } from '@tollgate/testkit/services';
import t from 'tap';
import { manifest } from './support/limits.ts';
import { startLimiter } from './support/processes.ts';

t.test('a limiter compares the rules on trial of the xDS server, and enforces the others', async (t) => {
  const folder = makeTextFolder(t);
  const write = (requests: number, trial: boolean) =>
    folder.write(
      trial ? 'trial.yaml' : 'shop.yaml',
      manifest({
        name: trial ? 'trial' : 'shop',
        domain: 'shop',
        unit: 'Year',
        limits: { user: requests },
        trial,
      }),
    );
  write(3, false);
  write(1, true);
  const xds = await startXdsServer({ XDS_FOLDER: folder.path });
  t.teardown(() => xds.stop());
  const limiter = await startLimiter(xds.address);
  t.teardown(limiter.stop);
  const report = async () => {
    const response = await fetch(`${limiter.debugUrl}/trial`, { headers: { accept: 'application/json' } });
    return JSON.parse(await response.text());
  };
  const compared = (requests: number) =>
    awaitUntil(
      async () => {
        const current = await report();
        return current.domains[0]?.requests === requests ? current : undefined;
      },
      { what: `${requests} compared requests` },
    );

  const codes = [];
  for (let i = 0; i < 4; i += 1) codes.push((await limiter.decide('shop', { user: 'a' })).code);
  t.same(codes, ['OK', 'OK', 'OK', 'OVER_LIMIT']);
  t.match(await compared(4), {
    trial: { domains: 1, rules: 1 },
    rules: [{ rule: 'shop.user', limit: '1 per year', wouldRefuse: 3, refused: 1, newlyRefused: 2 }],
  });
  t.match(await fetchText(`${xds.adminUrl}/snapshot`), /shop\.user: .*requests_per_unit=1,.*, on trial/);

  write(2, true);
  await awaitUntil(async () => (await report()).domains.length === 0, { what: 'counts of the edited rules' });
  await limiter.decide('shop', { user: 'b' });
  t.match(await compared(1), { rules: [{ limit: '2 per year', wouldRefuse: 0 }] });
  rmSync(join(folder.path, 'trial.yaml'));
  await awaitUntil(async () => (await report()).trial === undefined, { what: 'the end of the trial' });
  t.match((await limiter.rules())[0], /^shop\.user: unit=YEAR requests_per_unit=3/);
});
