//! What the machine itself answers, in words a person knows. Pure.

use std::io;

use super::Text;

/// Why a file, a socket or a program could not be used.
pub fn io(error: &io::Error) -> Text {
    match error.kind() {
        io::ErrorKind::NotFound => Text::new("不存在", "it does not exist"),
        io::ErrorKind::PermissionDenied => Text::new("没有权限", "permission denied"),
        io::ErrorKind::AlreadyExists => Text::new("已存在", "it exists already"),
        io::ErrorKind::AddrInUse => Text::new("地址已被占用", "the address is in use"),
        io::ErrorKind::AddrNotAvailable => Text::new(
            "本机没有这个地址",
            "this machine does not have that address",
        ),
        io::ErrorKind::ConnectionRefused => Text::new("连接被拒绝", "the connection was refused"),
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::NotConnected => Text::new("对方断开了连接", "the other side hung up"),
        io::ErrorKind::UnexpectedEof => Text::new("内容不完整", "it ended too early"),
        io::ErrorKind::TimedOut => Text::new("超时", "it took too long"),
        io::ErrorKind::NotADirectory => Text::new("不是目录", "it is not a directory"),
        io::ErrorKind::IsADirectory => Text::new("是目录，不是文件", "it is a directory"),
        io::ErrorKind::DirectoryNotEmpty => Text::new("目录不是空的", "the directory is not empty"),
        io::ErrorKind::ReadOnlyFilesystem => {
            Text::new("文件系统只读", "the file system is read-only")
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Text::new("磁盘已满", "the disk is full")
        }
        io::ErrorKind::FileTooLarge => Text::new("文件过大", "the file is too large"),
        io::ErrorKind::InvalidData => Text::new("内容无法识别", "its content cannot be read"),
        io::ErrorKind::OutOfMemory => Text::new("内存不足", "there is not enough memory"),
        _ => match error.raw_os_error() {
            Some(code) => Text::made(
                format!("系统错误 {code}"),
                format!("the system says error {code}"),
            ),
            None => Text::new("系统拒绝了", "the system refused"),
        },
    }
}

/// nod itself cannot begin: no threads, no signals.
pub fn cannot_start(error: &io::Error) -> Text {
    about("无法启动", "cannot start", error)
}

/// A place nobody can connect to.
pub fn cannot_listen(error: &io::Error) -> Text {
    about("无法监听端口", "cannot listen on the port", error)
}

fn about(zh: &str, en: &str, error: &io::Error) -> Text {
    let why = io(error);
    Text::made(format!("{zh}：{}", why.zh), format!("{en}: {}", why.en))
}

/// A program that cannot be run.
pub fn program(name: &str, error: &io::Error) -> Text {
    if error.kind() == io::ErrorKind::NotFound {
        return Text::made(
            format!("没有 `{name}` 这个程序"),
            format!("there is no program `{name}`"),
        );
    }
    let why = io(error);
    Text::made(
        format!("`{name}`：{}", why.zh),
        format!("`{name}`: {}", why.en),
    )
}
