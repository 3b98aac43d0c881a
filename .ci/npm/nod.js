#!/usr/bin/env node
// Starts the nod of this platform: it lies in a package of its own, which npm
// picks by `os` and `cpu`. Downloads nothing.
'use strict';

const { spawn } = require('child_process');
const { constants } = require('os');

const name = `nod-feishu-${process.platform}-${process.arch}`;

let nod;
try {
  nod = require.resolve(`${name}/bin/nod`);
} catch {
  console.error(`nod: the package ${name} is not installed.`);
  console.error('Either there is no nod for this platform (there is one for Linux with glibc and for macOS, x64 and arm64),');
  console.error('or npm was told to leave optional dependencies out: npm install -g --include=optional nod-feishu');
  process.exit(1);
}

const child = spawn(nod, process.argv.slice(2), { stdio: 'inherit' });
child.on('error', (error) => {
  console.error(`nod: ${nod} can't be started: ${error.message}`);
  process.exit(1);
});
// A terminal's Ctrl-C reaches both; what is sent to this process alone is passed on.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']) {
  process.on(signal, () => child.kill(signal));
}
child.on('exit', (code, signal) => {
  process.exit(signal ? 128 + constants.signals[signal] : code);
});
