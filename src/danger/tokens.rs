//! Words of other languages that start programs, change files or talk to
//! others, in lower case.

/// Starts a program, or turns text into code.
pub(super) const RUNS: &str = "\
    system( popen subprocess os.exec os.spawn posix_spawn pty.spawn exec( execsync execfile \
    execv spawn( spawnsync child_process eval( __import__ compile( importlib ctypes \
    function(\" function(' vm.run process.binding deno.run deno.command bun.spawn bun.$ \
    shell_exec passthru proc_open pcntl_exec %x( %x{ %x[ open3 kernel. instance_eval \
    class_eval io.popen os.execute loadstring runtime.getruntime processbuilder \
    invoke-expression iex start-process downloadstring assert( create_function marshal.loads \
    pickle.loads yaml.load( yaml.unsafe_load fork qx{ qx/ qx( __builtins__ globals()[ \
    getattr(os getattr(__ constructor.constructor global.process module._load \
    process.mainmodule runpy code.interact setuid os.kill process.kill settimeout(\" reflect. \
    dlopen syscall load( builtins runtime.exec backticks shelljs execa";
/// The same, with a blank in it.
pub(super) const RUN_PHRASES: &[&str] = &[
    "system ",
    "exec ",
    "eval ",
    "new function(",
    "do shell script",
    "qx ",
    "tell application",
];

/// Deletes, overwrites or opens up files.
pub(super) const CHANGES: &str = "\
    os.remove os.unlink os.rmdir os.removedirs shutil.rmtree rmtree shutil.move shutil.copy \
    unlink rmsync fs.rm rmdir writefile appendfile createwritestream .write_text .write_bytes \
    os.chmod chmodsync os.rename renamesync file_put_contents fwrite fileutils remove_tree \
    path::remove file.write file.delete io.write( os.truncate truncatesync copyfilesync \
    symlink os.symlink os.replace extractall deno.remove deno.writetext bun.write set-content \
    remove-item out-file open(my spew dir.rmdir";

/// Talks to others.
pub(super) const CONNECTS: &str = "\
    socket.socket create_connection urlopen urlretrieve urllib.request urllib2 requests.get \
    requests.post requests.put requests.request requests.session requests.patch httpx. aiohttp \
    http.client httplib fetch( xmlhttprequest net.connect net.socket net.createconnection \
    require('http require(\"http require('net require(\"net require('dgram require('tls \
    require(\"tls require(\"dgram require('dns require(\"dns node:http node:net node:dns axios \
    http.get https.get http.request https.request lwp:: http::tiny net::http net/http open-uri \
    uri.open io::socket tcpsocket fsockopen curl_exec curl_init stream_socket smtplib ftplib \
    paramiko telnetlib websocket deno.connect invoke-webrequest webclient gethostbyname( \
    socketserver resolve( dns.lookup smtp";
/// The same, with a blank in it.
pub(super) const CONNECT_PHRASES: &[&str] = &["import socket", "use socket"];
