import { runSteps } from '@tollgate/kit/time';
import { compileRules } from '@tollgate/rules/compile';
import { listRules } from '@tollgate/rules/matched';
import { resourceSpelling } from '@tollgate/rules/spelling';
import t from 'tap';
import { MatchReport, type ReportedDomain } from '../../../src/rules/xds/match-report.ts';

/** A domain with rules of these keys, and the function that marks one as matched. */
function makeDomain(name: string, ...keys: readonly string[]) {
  const descriptors = keys.map((key) => ({
    key,
    rateLimit: { unit: 'minute', requestsPerUnit: 1 } as const,
  }));
  const document = { source: name, spelling: resourceSpelling, domain: name, descriptors };
  const compiled = runSteps(compileRules([document], { mergeDomains: false }));
  const root = compiled.ok ? compiled.rules.domains.get(name) : undefined;
  if (root === undefined) throw new Error('the rules are valid');
  const reported: ReportedDomain = { root, trialRoot: undefined };
  return {
    entry: [name, reported] as const,
    match(index: number) {
      const rule = listRules(root)[index];
      if (rule !== undefined) rule.matched = true;
    },
  };
}

t.test('only domains whose bits have changed on the stream are reported', async (t) => {
  const [shop, web] = [makeDomain('shop', 'a', 'b'), makeDomain('web', 'a')];
  const domains = new Map([shop.entry, web.entry]);
  const report = new MatchReport();
  const send = () => {
    const changed = runSteps(report.collect(domains));
    if (changed !== undefined) report.sent(changed);
    return changed && Object.fromEntries(changed);
  };
  t.strictSame(send(), {}, 'that it reports');
  t.equal(send(), undefined);
  shop.match(1);
  t.strictSame(send(), { shop: 'Ag==' });
  t.equal(send(), undefined);
  web.match(0);
  t.strictSame(send(), { web: 'AQ==' });
  report.startStream();
  t.strictSame(send(), { shop: 'Ag==', web: 'AQ==' });
});

t.test('report that was not sent is repeated, and a large one continues in the next', async (t) => {
  const domains = Array.from({ length: 501 }, (_, i) => makeDomain(`d${i}`, 'a'));
  for (const { match } of domains) match(0);
  const all = new Map(domains.map(({ entry }) => entry));
  const report = new MatchReport();
  t.equal(runSteps(report.collect(all))?.size, 500);
  const again = runSteps(report.collect(all));
  t.equal(again?.size, 500);
  report.sent(again ?? new Map());
  t.strictSame([...(runSteps(report.collect(all)) ?? [])], [['d500', 'AQ==']]);
});
