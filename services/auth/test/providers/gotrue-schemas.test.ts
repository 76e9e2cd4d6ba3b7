// Sign-in with a provider on databases of GoTrue.
import postgres from 'postgres';
import t from 'tap';
import { createGotrueSchema, gotrueSchemaDates, readGotrueSchema } from '../helpers/gotrue-schema.ts';
import { startWithProviders } from '../helpers/provider-sign-in.ts';
import { emptyDatabase } from '../helpers/test-database.ts';

const challenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';
const verifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';

for (const date of gotrueSchemaDates)
  t.test(`both flows work on the schema of ${date}`, async (t) => {
    const { url } = await emptyDatabase(t);
    const sql = postgres(url, { max: 1, onnotice: () => undefined });
    t.teardown(() => sql.end());
    await createGotrueSchema(sql, await readGotrueSchema(date));
    const { server, signIn } = await startWithProviders(t, { DB_DATABASE_URL: url });
    const implicit = await signIn('github');
    t.ok(implicit.fragment.access_token, implicit.url.search);
    const pkce = await signIn('google', { code_challenge: challenge, code_challenge_method: 's256' });
    const exchanged = await server.call('POST', '/token?grant_type=pkce', {
      body: { auth_code: pkce.query.code, code_verifier: verifier },
    });
    t.match(exchanged, { status: 200, body: { provider_token: 'provider-access-token' } });
    t.match(
      await sql`select count(*)::int as flows from auth.flow_state`,
      [{ flows: 0 }],
      'all flows are spent',
    );
  });
