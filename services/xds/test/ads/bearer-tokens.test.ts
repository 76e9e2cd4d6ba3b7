import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { createLogger } from '@tollgate/kit/logger';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { temporaryFolder } from '@tollgate/testkit/folders';
import t, { type Test } from 'tap';
import { BearerTokens, watchBearerTokens } from '../../src/ads/bearer-tokens.ts';
import { startAdsServer } from '../support/start-ads-server.ts';
import { testSnapshot } from '../support/test-snapshot.ts';

/** A watched token file with its log. */
async function followTokens(t: Test, text: string) {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const path = join(folder.path, 'tokens');
  await writeFile(path, text);
  const log: string[] = [];
  const logger = createLogger({
    level: 'trace',
    format: 'json',
    destination: { write: (line) => void log.push(line) },
  });
  const attempts: boolean[] = [];
  const onAttempt = (succeeded: boolean): void => void attempts.push(succeeded);
  const { tokens, close } = await watchBearerTokens(path, { logger, onAttempt });
  t.teardown(close);
  return { path, tokens, log, attempts };
}

t.test('rule 16: a call needs one of the tokens', async (t) => {
  const tokens = new BearerTokens(['one.token', 'another=']);
  for (const good of ['Bearer one.token', 'bearer another=', 'BEARER  one.token'])
    t.equal(tokens.check(good), undefined);
  for (const missing of [undefined, '', 'one.token', 'Basic one.token', 'Bearer', 'Bearer ']) {
    t.equal(tokens.check(missing), 'metadata "authorization: Bearer <token>" is required', String(missing));
  }
  for (const wrong of ['Bearer one.toke', 'Bearer one.token2', 'Bearer ONE.TOKEN', 'Bearer ünicode']) {
    t.equal(tokens.check(wrong), 'the bearer token is not accepted', wrong);
  }
});

t.test('rule 16: streams without a valid token are refused, and no log contains a token', async (t) => {
  const { tokens } = await followTokens(t, 'first-secret\n\n  second-secret \r\n');
  const { connect, logLines, metrics, limiters } = await startAdsServer(t, {
    snapshot: testSnapshot({ shop: 1 }),
    tokens,
  });
  const client = connect();
  for (const authorization of ['Bearer first-secret', 'Bearer second-secret']) {
    const stream = client.sotw({ authorization });
    stream.send();
    t.ok(await stream.next());
    stream.cancel();
  }
  for (const open of [client.sotw, client.delta]) {
    t.match(await open({ authorization: 'Bearer third-secret' }).ended, {
      code: status.UNAUTHENTICATED,
      details: 'the bearer token is not accepted',
    });
    t.match(await open().ended, { code: status.UNAUTHENTICATED, details: /authorization: Bearer/ });
  }
  t.match((await metrics.refusedStreams.get()).values, [{ labels: { reason: 'unauthenticated' }, value: 4 }]);
  t.notMatch(JSON.stringify(logLines), /secret/);
  await awaitUntil(() => limiters.size === 0, { what: 'the end of the streams' });
});

t.test('rule 16: a changed file changes the tokens, an invalid one does not', async (t) => {
  const { path, tokens, log, attempts } = await followTokens(t, 'old');
  const accepts = (token: string): boolean => tokens.check(`Bearer ${token}`) === undefined;
  await writeFile(path, 'old\nnew\n');
  await awaitUntil(() => accepts('new'), { what: 'the new token' });
  t.ok(accepts('old'), 'both, during a rotation');
  for (const [text, problem] of [
    ['\n', 'contains no token'],
    ['new\nnot a token\n', 'line 2 is not a bearer token'],
  ] as const) {
    await writeFile(path, text);
    await awaitUntil(() => log.some((line) => line.includes(problem)), { what: problem });
    t.ok(accepts('new'));
  }
  t.notMatch(log.join(), /not a token/);
  t.equal(attempts.at(0), true);
  t.equal(attempts.at(-1), false);
  await writeFile(path, 'new');
  await awaitUntil(() => !accepts('old'), { what: 'the old token to be refused' });
  t.ok(accepts('new'));
  t.equal(attempts.at(-1), true);
});

t.test('missing or empty token file fails the start', async (t) => {
  const { path } = await followTokens(t, 'token');
  const deps = { logger: createLogger({ level: 'fatal', format: 'json' }), onAttempt: () => undefined };
  await writeFile(path, ' \n');
  await t.rejects(watchBearerTokens(path, deps), { message: `${path}: contains no token` });
  await writeFile(path, 'a\n'.repeat(101));
  await t.rejects(watchBearerTokens(path, deps), { message: `${path}: contains more than 100 tokens` });
  await rm(path);
  await t.rejects(watchBearerTokens(path, deps), { code: 'ENOENT' });
});
