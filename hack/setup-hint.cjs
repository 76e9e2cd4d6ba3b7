// Runs before `npm start` of a service, on whatever Node the machine has: before `make setup` that
// is an old one, which would end with an error about the extension of a file, and there are no
// packages.
const { existsSync } = require('node:fs');
const { join } = require('node:path');

const leastMajor = 24;
const hasPackages = existsSync(join(__dirname, '../node_modules/.bin/node'));
const hasNode = Number(process.versions.node.split('.')[0]) >= leastMajor;

if (!hasPackages) {
  process.stderr.write(
    'Nothing is installed yet. Run `make setup` at the root of the checkout first: it brings Node 24 and all packages.\n',
  );
  process.exitCode = 1;
} else if (!hasNode) {
  process.stderr.write(
    `This is Node ${process.versions.node}, and Node ${leastMajor} is needed. Start with npm, at the root of the checkout: npm start -w services/<name>.\n`,
  );
  process.exitCode = 1;
}
