import t from 'tap';
import type { JsonObject } from '../../src/domain/json.ts';
import { builtInTemplates } from '../../src/mail/built-in-templates.ts';
import { parseTemplate, TemplateError } from '../../src/mail/template.ts';

function html(source: string, variables: JsonObject = {}): string {
  return parseTemplate(source, 'html').render(variables);
}

t.test('gaps are filled, and what is not there is empty', (t) => {
  const variables = { Email: 'a@b.co', Data: { name: 'Ada', n: 1, list: [1], nothing: null } };
  t.equal(html('<{{ .Email }}|{{.Email}}>', variables), '<a@b.co|a@b.co>');
  t.equal(html('{{ .Data.name }} {{ .Data.n }} {{ .Data.list }}', variables), 'Ada 1 [1]');
  t.equal(html('[{{ .Data.nothing }}{{ .Data.x.y }}{{ .None }}{{ .Email.length }}]', variables), '[]');
  t.equal(html('[{{ .constructor }}{{ .Data.__proto__ }}{{ .Data.toString }}]', variables), '[]');
  t.equal(html('{{ if eq .Email "}}" }}x{{ end }}{{ "}}" }}', variables), '}}');
  t.equal(html('a  {{- .Email -}}  b{{/* not shown */}}', variables), 'aa@b.cob');
  t.end();
});

t.test('conditions', (t) => {
  const source =
    '{{ if eq .Data.lang "fr" "fr-CA" }}Bonjour{{ else if and .Data.name (not .Data.quiet) }}Hello{{ else }}-{{ end }}!';
  t.equal(html(source, { Data: { lang: 'fr-CA' } }), 'Bonjour!');
  t.equal(html(source, { Data: { name: 'Ada' } }), 'Hello!');
  t.equal(html(source, { Data: { name: 'Ada', quiet: true } }), '-!');
  t.equal(html('{{ if or .a .b }}x{{ end }}{{ if ne .a 1 }}y{{ end }}', { a: 1, b: {} }), 'x');
  t.equal(html('{{ if .a }}1{{ if .b }}2{{ end }}3{{ end }}', { a: [0], b: '' }), '13');
  t.end();
});

t.test('what users say stays text', (t) => {
  const Data = { name: `<b a="1" b='2'>{{ .Email }}&` };
  t.equal(
    html('<p title="{{ .Data.name }}">', { Data, Email: 'x' }),
    '<p title="&lt;b a=&#34;1&#34; b=&#39;2&#39;&gt;{{ .Email }}&amp;">',
  );
  for (const link of ['javascript:alert(1)', ' JAVA\tSCRIPT:x', 'data:text/html,x', 'vbscript:x'])
    t.equal(html('<a href="{{ .Data.link }}">', { Data: { link } }), '<a href="#">');
  t.equal(html('<a href = {{ .U }}>', { U: 'https://a.b/?c&d' }), '<a href = https://a.b/?c&amp;d>');
  t.equal(parseTemplate('{{ .N }}', 'text').render({ N: '<&>' }), '<&>', 'subjects are no HTML');
  t.end();
});

t.test('what is no template is told', (t) => {
  for (const source of [
    '{{ .A',
    '{{ if .A }}',
    '{{ end }}',
    '{{ else }}',
    '{{ if .A }}{{ else }}{{ else }}{{ end }}',
    '{{ range .A }}{{ end }}',
    '{{ template "x" }}',
    '{{ .A | printf }}',
    '{{ eq }}',
    '{{ }}',
    '{{ if .A }}'.repeat(100) + '{{ end }}'.repeat(100),
  ])
    t.throws(() => parseTemplate(source, 'html'), TemplateError, source.slice(0, 50));
  t.end();
});

t.test('a template that is made to take long takes no time', (t) => {
  // Not by the clock: others may have the processor meanwhile.
  const before = process.cpuUsage();
  for (const source of [
    '{{'.repeat(500_000),
    `{{${' '.repeat(1_000_000)}`,
    '{{ "'.repeat(250_000),
    '{{ .A }}'.repeat(100_000),
  ])
    try {
      parseTemplate(source, 'html');
    } catch (error) {
      t.type(error, TemplateError);
    }
  const { user, system } = process.cpuUsage(before);
  t.ok(user + system < 3_000_000, `${user + system} µs`);
  t.end();
});

t.test('a mail does not grow without end', (t) => {
  const long = { Data: { x: 'y'.repeat(100_000) } };
  t.equal(html('{{ .Data.x }}', long).length, 8192);
  t.throws(() => html('{{ .Data.x }}'.repeat(1000), long), TemplateError);
  t.end();
});

t.test('the built-in templates hold a link and a code where there is one', (t) => {
  for (const [kind, source] of Object.entries(builtInTemplates)) {
    const text = html(source, {
      ConfirmationURL: 'https://x.test/?a=1&b=2',
      Token: '123456',
      Email: 'a@b.co',
    });
    const isLinked = !/NOTIFICATION|REAUTHENTICATION/.test(kind);
    t.equal(text.includes('<a href="https://x.test/?a=1&amp;b=2">'), isLinked, kind);
    t.equal(text.includes('<strong>123456</strong>'), !kind.endsWith('NOTIFICATION'), kind);
  }
  t.end();
});
