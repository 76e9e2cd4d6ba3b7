import t from 'tap';
import { developmentHints } from '../../src/dev/environment.ts';

t.test('the hints mention email limits, unless they are set', (t) => {
  const hints = (smtpMaxFrequencyMs: number | undefined) =>
    developmentHints(8081, { developmentFolder: 'data', smtpMaxFrequencyMs });
  t.match(hints(undefined), 'SVC_RATE_LIMIT_EMAIL_SENT=1000 SVC_SMTP_MAX_FREQUENCY=1s npm start');
  t.notMatch(hints(1000), 'SVC_SMTP_MAX_FREQUENCY');
  for (const text of [hints(undefined), hints(1000)]) t.match(text, 'http://localhost:8081/signup');
  t.end();
});
